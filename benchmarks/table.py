"""Results as text: one line a library, and how many times jdyn is faster."""

import statistics

COMPILED = ("pinocchio", "mujoco")
HEADER = (
    f"{'library':10} {'µs an evaluation':>17} {'spread':>7} {'lower':>7} {'compile':>8} {'error':>8} "
    f"{'jdyn is faster':>15}   remarks"
)


def seconds(row: dict) -> float | None:
    """Median seconds an evaluation, by the clock of the row's device; `None` where nothing was timed."""
    samples = row.get("wall_s" if row["device"] == "gpu" else "cpu_s")
    return statistics.median(samples) / row["batch"] if samples else None


def spread(row: dict) -> float | None:
    """Between the quartiles, relative to the median."""
    samples = row.get("wall_s" if row["device"] == "gpu" else "cpu_s")
    if not samples or len(samples) < 3:
        return None
    low, middle, high = statistics.quantiles(samples, n=4)
    return (high - low) / middle if middle else None


def ratios(rows: list[dict]) -> dict[str, tuple[str, float]]:
    """What jdyn's time of one case is to that of others: `best JAX peer`, `pinocchio`, `mujoco`, by name and ratio.

    A ratio above one says that jdyn is faster.
    """
    times = {row["library"]: time for row in rows if (time := seconds(row))}
    own = times.pop("jdyn", None)
    if own is None:
        return {}
    jax_peers = {name: time for name, time in times.items() if name not in COMPILED}
    found = {name: (name, times[name] / own) for name in COMPILED if name in times}
    if jax_peers:
        best = min(jax_peers, key=jax_peers.__getitem__)
        found["best JAX peer"] = best, jax_peers[best] / own
    return found


def fraction_of_roofline(row: dict, peaks: dict | None) -> float | None:
    """Least time that the device needs for the row's operations and bytes, over the time taken."""
    time = seconds(row)
    if not peaks or not time or row.get("flops") is None:
        return None
    least = max(row["flops"] / peaks["flops_per_s"], row["bytes"] / peaks["bytes_per_s"])
    return least / (time * row["batch"])


def line(row: dict, own: float | None, peaks: dict | None) -> str:
    """One library's line of a case."""
    if "error" in row:
        return f"{row['library']:10} {'-':>17} {'':7} {'':7} {'':8} {'':8} {'':15}   {row['error']}"
    time = seconds(row)
    cells = [
        f"{row['library']:10}",
        f"{_number(time and 1e6 * time):>17}",
        f"{_percent(spread(row)):>7}",
        f"{_text(row.get('lower_s'), '.2f', ' s'):>7}",
        f"{_text(row.get('compile_s'), '.2f', ' s'):>8}",
        f"{_text(row.get('relative_error'), '.0e'):>8}",
        f"{_text(time / own if time and own and row['library'] != 'jdyn' else None, '.2f', ' x'):>15}",
    ]
    return " ".join(cells) + "   " + "; ".join(_remarks(row, peaks))


def _remarks(row, peaks):
    if row.get("note"):
        yield row["note"]
    if row["quantity"] == "sweep" and (time := seconds(row)):
        yield f"{1 / time:.0f} lanes a second"
    count = len(row.get("wall_s", ()))
    if 0 < count < row["repeats"]:
        yield f"{count} of {row['repeats']} repeats in the time there was"
    if fraction := fraction_of_roofline(row, peaks):
        yield f"{100 * fraction:.2g} % of the roofline"


def summary(rows: list[dict]) -> list[str]:
    """One line a case: jdyn's time, and the ratios."""
    lines = [
        f"{'robot':8} {'dtype':8} {'quantity':17} {'batch':>6} {'jdyn µs':>10}   {'best JAX peer':>20} "
        f"{'Pinocchio':>10} {'MuJoCo':>8}"
    ]
    for case, group in cases_of(rows).items():
        robot, dtype, quantity, batch = case
        own = next((time for row in group if row["library"] == "jdyn" and (time := seconds(row))), None)
        found = ratios(group)
        best = f"{found['best JAX peer'][1]:.2f} x {found['best JAX peer'][0]}" if "best JAX peer" in found else "-"
        others = [f"{found[name][1]:.2f} x" if name in found else "-" for name in COMPILED]
        lines.append(
            f"{robot:8} {dtype:8} {quantity:17} {batch:6} {_number(own and 1e6 * own):>10}   {best:>20} "
            f"{others[0]:>10} {others[1]:>8}"
        )
    return lines


def cases_of(rows: list[dict]) -> dict[tuple, list[dict]]:
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault((row["robot"], row["dtype"], row["quantity"], row["batch"]), []).append(row)
    return groups


def _number(x):
    if x is None:
        return "-"
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}"


def _percent(x):
    return _text(None if x is None else 100 * x, ".0f", " %")


def _text(x, form, unit=""):
    return "-" if x is None else f"{x:{form}}{unit}"
