"""`jdyn sweep` and `jdyn replay`."""

from __future__ import annotations

import contextlib
import pathlib

import jax
import numpy as np

import jdyn
from jdyn.cli.common import (
    compiling,
    deepest,
    default_path,
    draw_motion,
    listed,
    load_robot,
    read_spec,
    write_picture,
)
from jdyn.cli.parser import SWEEP_WORDS
from jdyn.simulation import Result
from jdyn.sweep import Spec
from jdyn.sweep.contents import Contents, contents_of
from jdyn.sweep.replay import spec_of
from jdyn.sweep.stored import lane_of
from jdyn.terminal.messages import enumerated
from jdyn.terminal.tables import print_table
from jdyn.view import plots


def sweep(options):
    """Many simulations of one motion under control, into a labelled dataset and a heat map."""
    spec = read_spec(options, SWEEP_WORDS, payload_against_gain)
    if spec.design is None:
        raise ValueError(f"{options.robot}: nothing varies; a sweep needs [design.parameters]")
    ranges = ", ".join(f"{name} {x.min():g} to {x.max():g}" for name, x in spec.design.values.items())
    device = jax.default_backend()
    print(f"{spec.name}: {spec.design.size} lanes, {ranges}, {spec.horizon:g} s each, {device}, {spec.dtype}")
    print("compiling ...", flush=True)
    own = {"chunk": options.chunk, "store": options.store, "shard": options.shard}
    with _cluster(options.scheduler or spec.scheduler) as client:
        dataset = spec.sweep(**{name: value for name, value in own.items() if value is not None}, engine=client)
    store = options.store or spec.store
    _print_throughput(dataset, spec.horizon)
    attributes = dataset.attrs
    dataset = (dataset if store is None else jdyn.open_sweep(store)).assign_attrs(title=spec.title)
    good = _print_results(dataset)
    _print_extremes(dataset, spec)
    output = options.output or default_path("sweep", spec.name)
    if store is None:
        path = output.with_name(f"{output.name}.nc")
        dataset.assign_attrs(attributes).to_netcdf(path, engine="scipy")
        print(f"dataset:  {path}")
    else:
        print(f"dataset:  {pathlib.Path(store).resolve()}, a lane again: jdyn replay {store} --lane 0")
    if dataset["result"].ndim == 2 and dataset[spec.outputs[0]].ndim == 2:
        axes = plots.heat_map(dataset, spec.outputs[0])
        write_picture(axes.figure, output.with_name(f"{output.name}.png"))
    return 0 if good else 1


def payload_against_gain(options) -> dict:
    """The entries of the spec that words ask for."""
    model, side = load_robot(options), round(options.lanes**0.5)
    body = options.body or deepest(model)
    model.topology.body(body)
    (low, high), (soft, stiff) = sorted(options.payload), sorted(options.kp)
    if low < 0:
        raise ValueError(f"--payload: expected masses of at least 0 kg, got {low:g}")
    varied = {
        "kp": {
            "of": "controller.kp", "low": soft, "high": stiff, "count": side, "scale": "log",
            "long_name": "proportional gain per unit of inertia",
        },
        "payload": {
            "of": f"body:{body}.mass", "by": "plus", "low": low, "high": high, "count": side,
            "long_name": f"payload on {body}",
        },
    }  # fmt: skip
    return {
        "title": f"{model.name}, what is left after {options.t1:g} s under PD control",
        "robot": options.robot, "dtype": options.dtype, "horizon": options.t1, "motion": {"seed": options.seed},
        "controller": {"kd": options.kd}, "design": {"parameters": varied},
    }  # fmt: skip


@contextlib.contextmanager
def _cluster(scheduler):
    """The workers that are asked for, or None."""
    if scheduler is None:
        yield None
        return
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            'the scheduler is one of Dask, which is not installed; pip install "jdyn[cluster]"'
        ) from error
    with distributed.Client(scheduler) as client:
        yield client


def replay(options):
    """One lane of a store again, beside what is stored."""
    contents = contents_of(options.store)
    parameters, stored = lane_of(contents, options.lane)
    spec = spec_of(contents, f"jdyn.replay(store, {options.lane}, fn) takes the function")
    _check_outputs(contents, spec)
    with spec.precision(), compiling() as times:
        lane = spec.lane(parameters)
        again = jax.block_until_ready(spec.kept(lane))
    print(f"{spec.title}: lane {options.lane}, compiled in {times.compiling:.1f} s, ran in {times.running:.1f} s")
    print_table(
        ("", "stored", "again"),
        [(name, listed(value), "") for name, value in parameters.items()]
        + [(name, listed(stored[name]), listed(again[name])) for name in stored],
    )
    draw_motion(options, lane.motion)


def _check_outputs(contents: Contents, spec: Spec):
    """Refuse a store of other outputs than its spec's: there is nothing to compare them with."""
    expected = [*spec.outputs, "result"]
    if {*expected} != {*contents.outputs}:
        raise ValueError(
            f"{contents.path}: expected the outputs of its spec, {enumerated(expected)}, "
            f"got {enumerated([*contents.outputs])}"
        )


def _print_throughput(dataset, t1):
    seconds, rate = dataset.attrs["run_seconds"], dataset.attrs["lanes_per_second"]
    if found := dataset.attrs["lanes_found"]:
        print(f"{found} lanes were done before")
    print(
        f"compiled in {dataset.attrs['compile_seconds']:.1f} s, ran in {seconds:.1f} s on {dataset.attrs['device']}: "
        f"{rate:.0f} lanes/s, {rate * t1:.0f} s of motion a second"
    )


def _print_results(dataset) -> int:
    """Lanes by their results; the number of those that succeeded."""
    codes, counts = np.unique(dataset["result"], return_counts=True)
    by_name = {Result(code).name: count for code, count in zip(codes, counts, strict=True)}
    good = by_name.pop("success", 0) + by_name.pop("event", 0)
    waiting = by_name.pop("not_run", 0)
    named = ", ".join(f"{count} {name}" for name, count in by_name.items())
    still = f", {waiting} have not run" if waiting else ""
    print(f"{good} lanes succeeded, {sum(by_name.values())} failed{f' ({named})' if named else ''}{still}\n")
    return good


def _print_extremes(dataset, spec, count=5):
    """The lanes with the smallest and the largest first output, failed ones last."""
    scalars = [name for name in spec.outputs if dataset[name].ndim == dataset["result"].ndim]
    if not scalars:
        return
    columns = (*spec.design.values, *scalars, "result")
    table = dataset[[*scalars, "result"]].to_dataframe().reset_index().sort_values(scalars[0], na_position="last")
    table = table[table["result"] != Result.not_run]
    for title, rows in (("best lanes", table.head(count)), ("worst lanes", table.tail(count))):
        print(f"{title}:")
        print_table(
            columns,
            [
                [*(f"{row[name]:.4g}" for name in columns[:-1]), Result(int(row["result"])).name]
                for _, row in rows.iterrows()
            ],
        )
        print()
