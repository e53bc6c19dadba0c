"""Programs compiled before they are needed, and kept for the next command."""

from jdyn.compile.warm_up import Program as Program
from jdyn.compile.warm_up import warm_up as warm_up
