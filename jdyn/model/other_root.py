"""Parts of a system one tree of which gets another root."""

from typing import Any, NamedTuple, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from jdyn.array import with_fields
from jdyn.model.frames import carrier_of
from jdyn.model.model import Model
from jdyn.model.names import JointName, fields_of, names_in
from jdyn.model.reroot import reroot
from jdyn.model.topology import WORLD
from jdyn.spatial import Transform

E = TypeVar("E", bound=Any)


class OtherRoot(NamedTuple):
    """A mechanism before and after one of its trees gets another root.

    Attributes:
        before: With the old root.
        after: With the new one.
        link: Name of the new root.
        joint: Name of the free joint, which moves the new root instead of the old one.
        way: Names of the bodies of `before` from the new root to the old one, which other joints move now.
    """

    before: Model
    after: Model
    link: str
    joint: str
    way: tuple[str, ...]

    @classmethod
    def at(cls, model: Model, link: str) -> Self:
        """Another root.

        Raises:
            ValueError: as `jdyn.reroot`.
        """
        after, topology = reroot(model, link), model.topology
        way = topology.supports[carrier_of(model, link, Transform.identity(model.dtype))[0]]
        return cls(model, after, link, topology.joint_names[way[-1]], tuple(topology.body_names[body] for body in way))

    @property
    def old_root(self) -> str:
        return self.way[-1]

    def carrier(self, link: str) -> str:
        """Name of the body of `before` that carries a link, or `"world"`."""
        body, _ = carrier_of(self.before, link, Transform.identity(self.before.dtype))
        return "world" if body == WORLD else self.before.body_names[body]

    def places(self, bodies: tuple[str, ...]) -> tuple[tuple[str, ...], Transform]:
        """Names that bodies of `before` have now, and poses of their old frames there, stacked."""
        found = [carrier_of(self.after, body, Transform.identity(self.after.dtype)) for body in bodies]
        poses = jax.tree.map(lambda *x: jnp.stack(x), *(pose for _, pose in found))
        return tuple(self.after.body_names[body] for body, _ in found), poses

    def on_bodies(self, element: E) -> E:
        """A force element that has `bodies` and `poses` in them, on the same bodies."""
        names, poses = self.places(element.bodies)
        return with_fields(element, bodies=names, poses=jax.vmap(Transform.__matmul__)(poses, element.poses))

    def refusal(self, part: Any, reason: str) -> ValueError:
        """An error that says why a part of the system cannot go along."""
        name = getattr(part, "name", "")
        called = f" {name!r}" if isinstance(name, str) and name else ""
        return ValueError(f"reroot: {type(part).__name__}{called} {reason} as soon as {self.link!r} is the root")


def with_other_root(part: Any, change: OtherRoot) -> Any:
    """A part of a system for the model with another root.

    Names of links and joints mean what they meant, except that of the free joint. A part that depends on what carries
    what says itself what becomes of it, by a method `with_other_root(change)`.

    Raises:
        ValueError: if it does not, or names the free joint.
    """
    if hasattr(part, "with_other_root"):
        return part.with_other_root(change)
    if isinstance(part, tuple | list):
        return type(part)(with_other_root(each, change) for each in part)
    if not isinstance(part, eqx.Module):
        return part
    if change.joint in (name for field in fields_of(type(part), JointName) for name in names_in(getattr(part, field))):
        raise change.refusal(
            part, f"is about the free joint {change.joint!r}, which moves another link than {change.old_root!r}"
        )
    return with_fields(part, **{field: with_other_root(value, change) for field, value in vars(part).items()})
