"""The command line: `jdyn` and `python -m jdyn`."""

from collections.abc import Sequence

from jdyn.cli.parser import parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Words after the program's name; those of the process if left out.

    Returns:
        The exit status: 0, or 1 after an error that was explained on standard error. Argparse exits with 2.
    """
    options = parser().parse_args(arguments)
    # Takes seconds, which help and wrong words need not wait for.
    from jdyn.cli.program import run

    return run(options)
