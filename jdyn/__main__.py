"""`python -m jdyn`."""

import sys

from jdyn.cli import main

sys.exit(main())
