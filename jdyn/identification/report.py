"""A page about an identified robot."""

from __future__ import annotations

import os
import pathlib

import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes

from jdyn.dynamics.passive import friction_share
from jdyn.identification.identify_log import LogIdentification, Prediction
from jdyn.io.whole_file import whole_file
from jdyn.terminal.messages import short_name
from jdyn.view.page import Page
from jdyn.view.plots import Picture

# Rows of joints in pictures, and the width of these [inch].
WIDTH, ROW, GRID_ROW = 11.0, 1.7, 2.4
COLUMNS = 4
# Correlations that are drawn [rows].
LAGS = 40
# Points of curves; fewest and most edges of bins of histograms.
POINTS, BINS = 201, (9, 41)
# Longest sum that is shown [characters].
LONGEST_SUM = 1000
# Normal deviate of 95 % intervals.
DEVIATE = 1.96
# A parameter with a larger deviation by its size is badly known.
BAD = 0.3
# Correlation from one row to the next at which intervals are doubtful, beyond what chance does.
CORRELATED = 0.2

MEASURED, PREDICTED, NOMINAL, FAINT = "0.55", "#0072B2", "#D55E00", "#eef2f7"


def save_report(found: LogIdentification, path: str | os.PathLike) -> None:
    """Write a page about an identified robot: one file of HTML that opens alone.

    It shows the parameters with their intervals, the condition of the regressor, forces as measured and as predicted,
    known to the fit and held out, histograms and correlations of residuals, friction over speed, the delay and other
    channels, what forces do not tell, and what was done to the log.

    >>> import xarray
    >>> t = np.linspace(0.0, 20.0, 2001)
    >>> q, a = np.sin(2 * t)[:, None], -4 * np.sin(2 * t)[:, None]
    >>> tau = 0.3 * a + 0.5 * 9.81 * np.sin(q) + 0.02 * np.random.default_rng(0).normal(size=(2001, 1))
    >>> log = xarray.Dataset({"q": (("time", "q_coordinate"), q), "tau": (("time", "v_coordinate"), tau)}, {"time": t})
    >>> found = jdyn.identification.identify_log(jdyn.load("pendulum"), log, parts=["inertias"], cutoff=5.0)
    >>> jdyn.identification.save_report(found, "fit.html")

    Args:
        found: By `jdyn.identification.identify_log`.
        path: Of the file. What is there is replaced.

    Raises:
        OSError: if it cannot be written.
    """
    with whole_file(pathlib.Path(path), "w") as file:
        file.write(_page(found).whole())


def _page(found) -> Page:
    page = Page(f"Identification of {short_name(found.model.name)}", found.identification.message)
    page.cards(_cards(found))
    _of_forces(page, found)
    _of_parameters(page, found)
    _of_channels(page, found)
    _of_friction(page, found)
    _of_residuals(page, found)
    _of_unknown(page, found)
    page.section("What was done to the log")
    page.items(found.notes)
    return page


def _cards(found) -> list[tuple[str, str]]:
    worst = found.held_out or found.training
    cards = [
        (f"{np.max(worst.relative):.2%}", f"largest error of {'held-out ' if found.held_out else ''}forces, relative"),
        (f"{found.condition:.4g}", "condition number of the regressor"),
        (f"{found.identification.fit.base.rank}", f"base parameters, of {len(found.identification.names)}"),
    ]
    if "delay" in found.channels.names:
        cards.append((f"{1000 * found.channels['delay']:.3f} ms", "delay of forces"))
    return cards


def _of_forces(page, found):
    page.section("Forces, measured and predicted")
    page.text(
        "Measured forces (grey) and those of the identified model (blue) and of the nominal one (dashed), all through "
        "the same filter. The shaded part was held out: the fit does not know it."
        if found.held_out
        else "Measured forces (grey), and those of the identified model (blue) and of the nominal one (dashed)."
    )
    page.picture(_force_picture(found), "Forces of each joint over time, measured and predicted")
    heads, columns = ["joint", "noise", "error", "relative"], [found.identification.fit.noise]
    columns += [found.training.errors, 100 * found.training.relative]
    if found.held_out:
        heads, columns = [*heads, "held out", "relative"], [*columns, found.held_out.errors]
        columns.append(100 * found.held_out.relative)
    heads = ["relative [%]" if head == "relative" else head for head in heads]
    rows = zip(_joints(found, math=False), *([f"{x:.3g}" for x in column] for column in columns), strict=True)
    page.text("Noise and errors are roots of mean squares [N m or N], of filtered forces where there is a filter.")
    page.table(heads, list(rows))


def _force_picture(found) -> Picture:
    joints = _joints(found)
    picture = Picture(figsize=(WIDTH, 0.8 + ROW * len(joints)), layout="constrained")
    rows: list[Axes] = list(np.ravel(picture.subplots(len(joints), 1, sharex=_one_clock(found), squeeze=False)))
    parts = [x for x in (found.training, found.held_out) if x is not None]
    for i, (axes, joint) in enumerate(zip(rows, joints, strict=True)):
        shift = 0.0
        for part in parts:
            if part is found.held_out:
                # Of another log, whose clock is its own, it follows.
                shift = 0.0 if _one_clock(found) else found.training.times[-1] - part.times[0] + 1.0
                axes.axvspan(part.times[0] + shift, part.times[-1] + shift, color=FAINT, zorder=0)
            named = part is parts[0]
            t = part.times + shift
            axes.plot(t, part.measured[:, i], color=MEASURED, linewidth=3, label="measured" if named else None)
            axes.plot(
                t, part.nominal[:, i], color=NOMINAL, linewidth=0.8, linestyle="--", label="nominal" if named else None
            )
            axes.plot(t, part.predicted[:, i], color=PREDICTED, linewidth=0.9, label="identified" if named else None)
        axes.set_title(joint, loc="left", fontsize=9)
        axes.set_ylabel("[N m]", fontsize=8)
        _quiet(axes)
    rows[-1].set_xlabel("time [s]")
    rows[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, fontsize=8, frameon=False)
    return picture


def _one_clock(found) -> bool:
    """Tell whether what was held out is the end of the same log."""
    return found.held_out is None or bool(found.held_out.times[0] > found.training.times[-1])


def _of_parameters(page, found):
    page.section("Parameters")
    fit = found.identification.fit
    page.text(
        f"The regressor's columns are scaled to length one; its condition number is {found.condition:.4g}. Forces tell "
        "base parameters: single parameters or sums of them. Intervals are of 95 %, for errors that are independent "
        "from row to row. Rows in grey have a deviation of more than 30 % of their estimate."
    )
    deviations, intervals = np.sqrt(np.diag(fit.covariance)), fit.intervals()
    relative = deviations / np.maximum(np.abs(fit.values), np.finfo(float).tiny)
    columns = fit.base.names, fit.nominal, fit.values, intervals, relative
    rows = [
        (_cut(name), f"{before:.4g}", f"{after:.4g}", f"{low:.4g}", f"{high:.4g}", _percent(share))
        for name, before, after, (low, high), share in zip(*columns, strict=True)
    ]
    heads = ("base parameter", "nominal", "estimate", "from", "to", "deviation [%]")
    page.table(heads, rows, weak=list(relative > BAD))
    result = found.identification
    rows = [
        (name, f"{a:.4g}", f"{b:.4g}", kind)
        for name, a, b, kind in zip(result.names, result.nominal, result.values, fit.base.identifiable, strict=True)
    ]
    page.text("The identified model has these, of all that could exist those nearest to the nominal model.")
    page.table(
        ("parameter of the model", "nominal", "identified", "forces tell it"), rows, fold="All parameters of the model"
    )


def _cut(name) -> str:
    return name if len(name) <= LONGEST_SUM else f"{name[:LONGEST_SUM]} ..."


def _percent(share) -> str:
    if share >= 10:
        return "> 1000"
    return f"{100 * share:.0f}" if share >= 0.1 else f"{100 * share:.2g}"


def _of_channels(page, found):
    if not found.channels.names:
        return
    page.section("Delay, offsets and gains")
    fit = found.channels
    rows = [
        (name, f"{value:.5g}", f"{low:.5g}", f"{high:.5g}", unit)
        for name, value, (low, high), unit in zip(fit.names, fit.values, fit.intervals(), fit.units, strict=True)
    ]
    page.text(
        "A positive delay means that forces were written later than the positions to which they belong. An offset is "
        "also what friction forwards is beyond friction backwards, by half."
    )
    page.table(("channel", "estimate", "from", "to", "unit"), rows)


def _of_friction(page, found):
    page.section("Friction over speed")
    page.text(
        "Friction of the identified model with its 95 % band, and what is left of measured forces without all else of "
        "the model."
    )
    joints = _joints(found)
    height = int(np.ceil(len(joints) / COLUMNS))
    picture = Picture(figsize=(WIDTH, 0.3 + GRID_ROW * height), layout="constrained")
    grid: list[Axes] = list(np.ravel(picture.subplots(height, min(COLUMNS, len(joints)), squeeze=False)))
    part: Prediction = found.training
    for i, (axes, joint) in enumerate(zip(grid, joints, strict=False)):
        left = part.residuals[:, i] + part.friction[:, i]
        axes.plot(part.v[:, i], left, ".", color=MEASURED, markersize=2.5, alpha=0.6)
        v = np.linspace(np.min(part.v[:, i]), np.max(part.v[:, i]), POINTS)
        force, deviation = _friction(found, i, v)
        if deviation is not None:
            axes.fill_between(v, force - DEVIATE * deviation, force + DEVIATE * deviation, color=PREDICTED, alpha=0.25)
        axes.plot(v, force, color=PREDICTED)
        axes.set_title(joint, loc="left", fontsize=9)
        _quiet(axes)
    for axes in grid[len(joints) :]:
        axes.set_visible(False)
    picture.supxlabel("velocity [rad/s or m/s]", fontsize=9)
    picture.supylabel("friction [N m or N]", fontsize=9)
    page.picture(picture, "Friction of each joint over its speed")


def _friction(found, i, v):
    """Friction of a joint at some velocities, and its standard deviation, if forces tell its coefficients alone."""
    model, fit = found.model, found.identification.fit
    at = model.topology.independent_v[i]
    shape = np.stack([v, np.asarray(friction_share(jnp.asarray(v), model.friction_speed[at]))])
    force = np.array([float(model.damping[at]), float(model.friction[at])]) @ shape
    names, columns = found.identification.names, list(fit.base.columns)
    joint = model.topology.v_names[i]
    dot, bracket, index = joint.partition("[")
    wanted = [names.index(f"joint:{dot}.{what}{bracket}{index}") for what in ("damping", "friction")]
    known = [k for k, column in enumerate(wanted) if fit.base.identifiable[column] == "alone"]
    if any(fit.base.identifiable[column] == "combined" for column in wanted) or not known:
        return force, None
    places = [columns.index(wanted[k]) for k in known]
    covariance = fit.covariance[np.ix_(places, places)]
    return force, np.sqrt(np.einsum("kn,kl,ln->n", shape[known], covariance, shape[known]))


def _of_residuals(page, found):
    page.section("Residuals")
    chance = DEVIATE / np.sqrt(len(found.training.times))
    correlated = [
        joint
        for joint, value in zip(_joints(found, math=False), found.correlation, strict=True)
        if abs(value) > CORRELATED + chance
    ]
    page.text(
        "Histograms beside the normal distribution of the noise of each joint, and correlations from one row to later "
        "ones, of which noise has 19 of 20 within the band."
    )
    if correlated:
        page.text(f"Residuals of {', '.join(correlated)} are not noise alone: intervals are too narrow.")
    joints = _joints(found)
    picture = Picture(figsize=(WIDTH, 0.5 + ROW * len(joints)), layout="constrained")
    grid = picture.subplots(len(joints), 2, squeeze=False)
    r, noise = found.training.residuals, found.identification.fit.noise
    for i, (joint, (left, right)) in enumerate(zip(joints, grid, strict=True)):
        samples = [part.residuals[:, i] for part in (found.training, found.held_out) if part is not None]
        reach = np.max(np.abs(np.concatenate(samples)))
        bins = np.linspace(-reach, reach, int(np.clip(np.sqrt(min(map(len, samples))), *BINS)))
        left.hist(samples[0], bins, density=True, color=MEASURED, alpha=0.7)
        x = np.linspace(-reach, reach, POINTS)
        left.plot(x, np.exp(-((x / noise[i]) ** 2) / 2) / (noise[i] * np.sqrt(2 * np.pi)), color=PREDICTED)
        for held_out in samples[1:]:
            left.hist(held_out, bins, density=True, histtype="step", color=NOMINAL, linewidth=1.2)
        lags, values = _correlations(r[:, i])
        right.axhspan(-chance, chance, color=FAINT, zorder=0)
        right.vlines(lags, 0, values, color=PREDICTED, linewidth=1.5)
        right.axhline(0, color="0.4", linewidth=0.8)
        right.set_ylim(min(-0.5, 1.1 * np.min(values)), max(0.5, 1.1 * np.max(values)))
        left.set_title(joint, loc="left", fontsize=9)
        left.set_yticks([])
        _quiet(left)
        _quiet(right)
    grid[0, 1].set_title("correlation", loc="left", fontsize=9)
    grid[-1, 0].set_xlabel("residual [N m or N]" + ("; held out in outline" if found.held_out else ""))
    grid[-1, 1].set_xlabel("rows later")
    page.picture(picture, "Histogram and correlations of the residuals of each joint")


def _correlations(x):
    x = x - np.mean(x)
    lags = np.arange(1, min(LAGS, len(x) - 1) + 1)
    return lags, np.array([np.sum(x[lag:] * x[:-lag]) for lag in lags]) / max(np.sum(x**2), np.finfo(float).tiny)


def _of_unknown(page, found):
    page.section("What forces do not tell")
    fit, names = found.identification.fit, found.identification.names
    kinds = np.array(fit.base.identifiable)
    none = [name for name, kind in zip(names, kinds, strict=True) if kind == "no"]
    combined = [name for name, kind in zip(names, kinds, strict=True) if kind == "combined"]
    deviations = np.sqrt(np.diag(fit.covariance))
    badly = [
        names[column]
        for column, value, deviation in zip(fit.base.columns, fit.values, deviations, strict=True)
        if deviation > BAD * abs(value)
    ]
    page.text("Only a nominal model, or another motion, tells these.")
    groups = (
        ("not at all", none),
        ("combined with others only", combined),
        ("to more than 30 % of their size only", badly),
    )
    rows = [(what, str(len(group)), ", ".join(group)) for what, group in groups if group]
    page.table(("", "number", "parameters"), rows or [("everything is told", "", "")])


def _joints(found, math: bool = True) -> list[str]:
    """Names of coordinates, for Matplotlib without a meaning of dollars."""
    names = [short_name(name) for name in found.model.topology.v_names]
    return [name.replace("$", r"\$") for name in names] if math else names


def _quiet(axes):
    axes.grid(alpha=0.25)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
