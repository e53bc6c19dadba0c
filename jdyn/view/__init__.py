"""Pictures: plots of motions, sweeps and tuned controllers."""

from jdyn.view import plots as plots
