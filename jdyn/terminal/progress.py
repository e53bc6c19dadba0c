"""Progress on standard error."""

import sys

from tqdm.auto import tqdm


def progress_bar(what: str, unit: str, total: int, progress: bool | None, done: int = 0) -> tqdm:
    """A bar.

    Args:
        what: What goes on.
        unit: Of what is counted.
        total: How many.
        progress: Whether to show it; where somebody sees it if None: at a terminal or in a notebook.
        done: How many were done before.
    """
    watched = sys.stderr.isatty() or _in_notebook()
    hidden = not (watched if progress is None else progress)
    return tqdm(total=total, initial=done, unit=unit, desc=what, disable=hidden)


def _in_notebook() -> bool:
    """Tell whether this process is the kernel of a notebook; one that only starts kernels imports `ipykernel`, too."""
    kernels = sys.modules.get("ipykernel.kernelapp")
    return kernels is not None and kernels.IPKernelApp.initialized()
