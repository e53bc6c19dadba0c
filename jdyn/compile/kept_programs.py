"""Compiled programs that outlive a command."""

import contextlib
import pathlib
import sys
import tempfile
from typing import Any

import jax
import platformdirs
from jax.experimental.compilation_cache import compilation_cache

from jdyn.compile.private_folder import make_private

SWITCH = "jax_enable_compilation_cache"
FOLDER = "jax_compilation_cache_dir"
THRESHOLD = "jax_persistent_cache_min_compile_time_secs"


def kept_programs() -> contextlib.AbstractContextManager:
    """Inside this context, compiled programs are kept in the user's cache folder, where the next command finds them.

    Existing JAX cache settings take precedence. Only the same version of JAX on the same kind of processor finds an
    entry, so machines may share a home folder. A folder that somebody else owns or may write to is not used, which a
    warning says.
    """
    settings = jax.config.values
    if settings[FOLDER] is not None or not settings[SWITCH] or not _writable(user_folder()):
        return contextlib.nullcontext()
    # A command runs some fifty small programs, which together take as long to compile as a large one.
    return _settings({FOLDER: str(user_folder()), THRESHOLD: 0.0})


def programs_made_anew() -> contextlib.AbstractContextManager:
    """Inside this context, compiled programs are neither kept nor found."""
    return _settings({SWITCH: False})


def user_folder() -> pathlib.Path:
    return platformdirs.user_cache_path("jdyn", appauthor=False) / "programs"


def _writable(folder):
    try:
        # Programs that are found there are run: both folders are jdyn's own.
        make_private(folder, levels=2)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError as error:
        print(
            f"jdyn: warning: compiled programs are not kept for the next command in {folder}: {error}", file=sys.stderr
        )
        return False


@contextlib.contextmanager
def _settings(settings: dict[str, Any]):
    before = {name: jax.config.values[name] for name in settings}
    _use(settings)
    try:
        yield
    finally:
        _use(before)


def _use(settings):
    for name, value in settings.items():
        jax.config.update(name, value)
    # Otherwise JAX goes on with the folder that it met first, even if that was none.
    compilation_cache.reset_cache()
