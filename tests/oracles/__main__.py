"""Compares what cases give with what is frozen, or freezes it: `python -m tests.oracles [--write] [NAME ...]`.

Prints how far each array moved, as a share of its largest entry, how far it may, and where it went further, why no
further; and processor time. With `--write`, what the named cases give takes the place of what was frozen, and cases
that are no more are dropped.
"""

import argparse
import sys
import time

import jax

jax.config.update("jax_enable_x64", True)

from tests.oracles import frozen  # noqa: E402 (cases make arrays)
from tests.oracles.case import CASES  # noqa: E402


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("names", nargs="*", metavar="NAME", help="cases; all if left out")
    words.add_argument("--write", action="store_true", help="freeze what they give")
    options = words.parse_args()
    if unknown := set(options.names) - set(CASES):
        words.error(f"no case is called {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    kept, failed = frozen.frozen(), 0
    print(f"{'case':42} {'array':18} {'moved':>8} {'may':>8} {'s':>6}")
    for name in options.names or CASES:
        began = time.process_time()
        arrays = CASES[name].arrays()
        took = time.process_time() - began
        lead, seconds = name, f"{took:.1f}"
        for each in frozen.compared(name, arrays, kept.get(name, {})):
            may, why = each.tolerance.share, "" if each.held else each.tolerance.why
            print(f"{lead:42} {each.array:18} {each.by:8.1e} {may:8.1e} {seconds:>6} {why}".rstrip(), flush=True)
            failed, lead, seconds = failed + (not each.held), "", ""
        kept[name] = arrays
        if options.write:
            # At once, since the next case may take long.
            frozen.write({name: arrays for name, arrays in kept.items() if name in CASES})
    if options.write:
        print(f"{frozen.FILE}: {frozen.FILE.stat().st_size / 1000:.0f} kB")
        return 0
    print(f"{failed} arrays moved" if failed else "all hold")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
