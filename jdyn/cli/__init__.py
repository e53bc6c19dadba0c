"""The command line: `jdyn` and `python -m jdyn`."""

from jdyn.cli.program import main as main
