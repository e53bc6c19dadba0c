"""Plots, one call each: every function returns the axes that it drew in.

```
axes = jdyn.plots.energy(motion)
axes.figure.savefig("energy.png")
```

`axes=` draws into axes of your own, which have the figure's size and neighbours. Without it there is a new `Picture`, a
figure that a notebook shows as the last value of a cell: `jdyn.plots.energy(motion).figure`. Nothing touches
pyplot, so that no global state changes and no window opens.

Lines differ in dashes and markers, not in colours alone. Labels have units; axes are logarithmic where values spread
over decades.

>>> axes = jdyn.plots.curves(np.arange(3), {"square": np.arange(3) ** 2}, "x", "y")
>>> axes.figure.savefig("square.png")
"""

from jdyn.view.plots.curves import curves as curves
from jdyn.view.plots.distance import distance as distance
from jdyn.view.plots.energy import energy as energy
from jdyn.view.plots.fan import fan as fan
from jdyn.view.plots.gradient_growth import gradient_growth as gradient_growth
from jdyn.view.plots.gradient_health import gradient_health as gradient_health
from jdyn.view.plots.heat_map import heat_map as heat_map
from jdyn.view.plots.pairs import pairs as pairs
from jdyn.view.plots.phase_portrait import phase_portrait as phase_portrait
from jdyn.view.plots.picture import Picture as Picture
from jdyn.view.plots.steps import steps as steps
from jdyn.view.plots.stiffness import stiffness as stiffness
from jdyn.view.plots.trajectory import trajectory as trajectory
from jdyn.view.plots.tuning import tuning as tuning
from jdyn.view.plots.work_precision import work_precision as work_precision
