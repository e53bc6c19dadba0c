"""Trajectories as labelled datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jdyn.model import Model
from jdyn.simulation.energy_control import SuppliedEnergy
from jdyn.simulation.result import result_meanings

if TYPE_CHECKING:
    import xarray

_UNIT = {"turn": "rad", "slide": "m", "screw": "rad"}
SUPPLIED = SuppliedEnergy.part
UNITS = {"q": "rad, m or quaternion", "v": "rad/s or m/s", SUPPLIED: "J", "t": "s", "time": "s", "event_time": "s"}


def labelled(trajectory: Any, model: Model | None) -> xarray.Dataset:
    """Rows, events, result and statistics of a trajectory, as `Trajectory.to_xarray` describes them."""
    import xarray  # it takes as long to import as JAX, and few need it

    ts, events = np.asarray(trajectory.ts), trajectory.events
    lanes = tuple("lane" if i == 0 else f"lane_{i}" for i in range(ts.ndim - 1))
    times, happened = (*lanes, "time"), (*lanes, "event")
    variables = {
        "q": ((*times, "q_coordinate"), trajectory.q),
        "v": ((*times, "v_coordinate"), trajectory.v),
        "event_time": (happened, events.ts),
        "event_which": (happened, events.which),
        "event_entry": (happened, events.entry),
        "event_q": ((*happened, "q_coordinate"), events.q),
        "event_v": ((*happened, "v_coordinate"), events.v),
        "result": (lanes, trajectory.result),
        **{
            name: (times if name.startswith("row_") else lanes, x)
            for name, x in trajectory.stats.items()
            if x is not None
        },
    }
    if SUPPLIED in trajectory.parts:
        variables[SUPPLIED] = times, trajectory.parts[SUPPLIED]
    coordinates: dict[str, Any] = _numbers(trajectory) if model is None else _joints(model)
    common = ts.reshape(-1, ts.shape[-1])[0]
    if np.array_equal(np.broadcast_to(common, ts.shape), ts, equal_nan=True):
        coordinates["time"] = common
    else:
        variables["t"] = times, ts
    dataset = xarray.Dataset({name: (dims, np.asarray(x)) for name, (dims, x) in variables.items()}, coordinates)
    if not dataset.sizes["event"]:
        # An axis without length would leave a table without rows.
        dataset = dataset.drop_dims("event")
    dataset["result"].attrs.update(result_meanings())
    for name in UNITS.keys() & set(dataset.variables):
        dataset[name].attrs["units"] = UNITS[name]
    return dataset


def _numbers(trajectory):
    return {f"{name}_coordinate": np.arange(np.shape(getattr(trajectory, name))[-1]) for name in ("q", "v")}


def _joints(model):
    """Name and unit of each coordinate; numbers of a quaternion have the unit 1."""
    topology = model.topology
    q_units = [unit for kind in topology.kinds for unit in _configuration_units(kind)]
    v_units = [f"{_UNIT[motion]}/s" for kind in topology.kinds for motion in kind.motions]
    return {
        "q_coordinate": list(topology.q_names),
        "v_coordinate": list(topology.v_names),
        "q_unit": ("q_coordinate", [q_units[i] for i in topology.independent_q]),
        "v_unit": ("v_coordinate", [v_units[i] for i in topology.independent_v]),
    }


def _configuration_units(kind):
    if kind.nq == kind.nv:
        return [_UNIT[motion] for motion in kind.motions]
    # Positions, then a quaternion in the place of the turns.
    return ["m"] * kind.motions.count("slide") + ["1"] * 4
