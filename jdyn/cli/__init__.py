"""The command line: `jdyn` and `python -m jdyn`."""

import os
import sys
from collections.abc import Sequence

from jdyn.terminal.interruption import ended_by_interruptions

# As shells say that the signal SIGPIPE has ended a program.
NOBODY_READS = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Words after the program's name; those of the process if left out.

    Returns:
        The exit status: 0, or 1 after an error that was explained on standard error, or 141 if what reads the output
        has ended. Argparse exits with 2.
    """
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS


def _run(arguments):
    with ended_by_interruptions():
        from jdyn.cli.parser import parser

        options = parser().parse_args(arguments)
        # Takes seconds, which help and wrong words need not wait for.
        from jdyn.cli.program import run

    return run(options)
