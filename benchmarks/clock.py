"""Timing of one call, which must block until its result is there."""

import time

# A sample shorter than this says more about the clock than about the call.
SHORTEST = 0.02


def measure(call, repeats: int, budget: float) -> dict:
    """Wall and processor seconds of a call: `repeats` samples of each, after a warm-up.

    Samples of short calls are means over several. Fewer samples are taken where they would need more than `budget`
    seconds; of a call that takes longer than that alone, the warm-up is the sample.
    """
    began = time.perf_counter()
    first = _sample(call, 1)
    if time.perf_counter() - began > budget:
        return {"wall_s": [first[0]], "cpu_s": [first[1]], "calls": 1}
    once = _sample(call, 1)[0]
    calls = max(1, round(SHORTEST / max(once, 1e-7)))
    samples = []
    while len(samples) < repeats and (not samples or time.perf_counter() - began < budget):
        samples.append(_sample(call, calls))
    wall, cpu = zip(*samples, strict=True)
    return {"wall_s": wall, "cpu_s": cpu, "calls": calls}


def _sample(call, calls):
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(calls):
        call()
    return (time.perf_counter() - wall) / calls, (time.process_time() - cpu) / calls
