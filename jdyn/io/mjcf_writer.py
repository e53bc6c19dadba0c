"""Models, and all that acts on them, to MJCF files."""

import os
import pathlib
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jdyn.io.mjcf_document import MjcfDocument
from jdyn.io.mjcf_writer_scene import add_scene
from jdyn.io.scene import Scene
from jdyn.io.whole_file import whole_file
from jdyn.model import ModelWarning


def write_mjcf(scene: Scene, path: str | os.PathLike, *, limited: bool, lost: Iterable[str] = ()) -> None:
    """Write a model and what acts on it as an MJCF file. `jdyn.save_mjcf` says what that has.

    Args:
        scene: What to write; leaves are concrete.
        path: File to write; an existing one is replaced.
        limited: Whether joints stop at their limits.
        lost: What is left out already, in words.

    Raises:
        ValueError: if MJCF cannot represent the kind of a joint, a body, or a name.

    Warns:
        ModelWarning: once, naming everything that is left out.
    """
    path, eps = pathlib.Path(path), float(jnp.finfo(scene.model.dtype).eps)
    scene = jax.tree.map(lambda x: np.asarray(x, float) if eqx.is_inexact_array(x) else x, scene)
    document = MjcfDocument(scene, path.absolute().parent, limited=limited, eps=eps)
    add_scene(document, scene)
    ET.indent(document.root)
    with whole_file(path, "wb") as file:
        ET.ElementTree(document.root).write(file, encoding="utf-8", xml_declaration=True)
    named = [*lost, *(f"{what} of {names}" for what, names in document.lost.listed().items())]
    if named:
        warnings.warn(f"{path}: MJCF cannot represent {'; '.join(named)}", ModelWarning, stacklevel=3)
