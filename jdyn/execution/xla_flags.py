"""Flags of XLA for processors, in all of a process: it takes these options from the environment alone.

Measured with jaxlib 0.10.2 on one core, in float32, with a Panda under PD control: the gradient of a simulation takes
3 ms, of 12 without them, and 256 simulations compile in 2.2 s, of 3.6. Single simulations, which are cut into kernels
(`few_kernels.py`), take about as long without them.
"""

import os
import sys
import warnings
from collections.abc import MutableMapping

NAME = "XLA_FLAGS"
# Loops that touch so few bytes become one kernel each, in place of one for every operation in them [B]. With 16 times
# as many, loops of a gripper took minutes to compile, and batches of hundreds of lanes ran slower.
ONE_KERNEL = 65536
# XLA's older emitters write loops in half of the time, which run as fast or faster. Where XLA does not know an option
# that begins with xla_, it goes on without.
EMITTERS = (
    "--xla_backend_extra_options=xla_cpu_disable_new_fusion_emitters,"
    f"xla_cpu_small_while_loop_byte_threshold={ONE_KERNEL}"
)
# No products by YNNPACK: its calls take longer than small products do, a seventh of a simulation with contact, and
# large products take as long without it. All versions of jaxlib that jdyn takes know this flag.
NO_YNNPACK = "--xla_cpu_experimental_ynn_fusion_type="
OURS = EMITTERS, NO_YNNPACK


def set_xla_flags(environment: MutableMapping[str, str] = os.environ) -> None:
    """Add the options to the environment variable `XLA_FLAGS`, from where XLA reads them when JAX computes for the
    first time. A flag that it has already stays as it is. A value that names a file is left alone.

    Warns:
        RuntimeWarning: if JAX has computed already, on a processor, without them.
    """
    there = environment.get(NAME, "").strip()
    wanted = [flag for flag in OURS if flag.split("=")[0] not in there]
    if not wanted or (there and not there.startswith("-")):
        return
    if _computes_on_processors():
        warnings.warn(
            "jdyn was imported after JAX had computed something: XLA has read its flags, and on processors gradients "
            f"of simulations take up to four times as long. Import jdyn first, or set {NAME}='{' '.join(OURS)}'",
            RuntimeWarning,
            stacklevel=3,
        )
        return
    environment[NAME] = " ".join([there, *wanted]).strip()


def _computes_on_processors() -> bool:
    # Public JAX does not tell without computing.
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bridge is not None and bridge.backends_are_initialized() and bridge.default_backend() == "cpu"
