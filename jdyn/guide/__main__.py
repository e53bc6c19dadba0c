"""`python -m jdyn.guide FOLDER` writes the guide and the reference as HTML pages."""

import argparse


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m jdyn.guide", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", help="where to write them")
    folder = parser.parse_args().folder
    try:
        from jdyn.guide.site import build
    except ModuleNotFoundError as error:
        if error.name != "pdoc":
            raise
        print('the pages need pdoc: pip install "jdyn[docs]"')
        return 1
    print(f"open {build(folder)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
