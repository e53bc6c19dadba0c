"""Mark of programs of a lane that runs beside others, each by itself."""

import contextlib
import contextvars

_of_many = contextvars.ContextVar("of_many", default=False)


@contextlib.contextmanager
def one_of_many():
    """Programs lowered here are a lane's, and lanes are what runs side by side."""
    token = _of_many.set(True)
    try:
        yield
    finally:
        _of_many.reset(token)


def is_one_of_many() -> bool:
    """Tell whether `one_of_many` is in force."""
    return _of_many.get()
