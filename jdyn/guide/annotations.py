"""Annotations as people would write them: `Float[Array, "nq"]`, not the places where these types are defined."""

import collections.abc
import enum
import inspect
import re
import types
import typing
from typing import Any

import numpy.typing
from jaxtyping import AbstractArray, ArrayLike

from jdyn.guide import reference

ARRAY_LIKE = frozenset(typing.get_args(ArrayLike)), frozenset(typing.get_args(numpy.typing.ArrayLike))

# What is written without the package that it is from.
OWN = "", "builtins", "typing", "collections", "jax", "jaxlib", "jaxtyping", "jdyn"


class Written:
    """Text that is shown as it stands, where Python would show the `repr` of an annotation or a default."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self):
        return self.text


def legible_signature(signature: inspect.Signature) -> inspect.Signature:
    """The signature with all of its annotations and defaults as people would write them."""
    parameters = [
        parameter.replace(annotation=written(parameter.annotation), default=_default(parameter.default))
        for parameter in signature.parameters.values()
    ]
    return signature.replace(parameters=parameters, return_annotation=written(signature.return_annotation))


def constructor(kind: type) -> inspect.Signature | None:
    """Signature by which a class is called; None for those that users do not call: enumerations, errors and abstract
    classes."""
    if issubclass(kind, enum.Enum | BaseException) or inspect.isabstract(kind):
        return None
    return legible_signature(inspect.signature(kind).replace(return_annotation=inspect.Signature.empty))


def legible(annotation: Any) -> str:
    """An annotation in words of Python."""
    arguments = typing.get_args(annotation)
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return " | ".join(_alternatives(arguments))
    if typing.get_origin(annotation) is typing.Annotated:
        return legible(arguments[0])
    if typing.get_origin(annotation) is typing.Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if typing.get_origin(annotation) is collections.abc.Callable and arguments:
        taken, returned = arguments
        listed = "..." if taken is ... or isinstance(taken, typing.ParamSpec) else f"[{', '.join(map(legible, taken))}]"
        return f"Callable[{listed}, {legible(returned)}]"
    if arguments:
        return f"{legible(typing.get_origin(annotation))}[{', '.join(map(legible, arguments))}]"
    if isinstance(annotation, type) and issubclass(annotation, AbstractArray):
        return f'{annotation.dtype.__name__}[{legible(annotation.array_type)}, "{annotation.dim_str}"]'
    return _name(annotation)


def _alternatives(members):
    """Alternatives of a union; what numbers and arrays are called is one name."""
    for alike in ARRAY_LIKE:
        if alike <= set(members):
            members = ["ArrayLike", *(member for member in members if member not in alike)]
    return ["None" if member is type(None) else legible(member) for member in members]


def _name(annotation):
    if isinstance(annotation, str | typing.ForwardRef):
        return annotation if isinstance(annotation, str) else annotation.__forward_arg__
    if annotation is ... or annotation is None or annotation is type(None):
        return "..." if annotation is ... else "None"
    name = getattr(annotation, "__name__", str(annotation))
    if "[" in name:
        # A PyTree of something.
        return re.sub(r"[\w.]+\.(\w+)", r"\1", name)
    name = name.rpartition(".")[2]
    if isinstance(annotation, type) and (public := reference.public_name(annotation)):
        return public
    package = getattr(annotation, "__module__", "").partition(".")[0]
    return name if package in OWN else f"{package}.{name}"


def written(annotation: Any) -> Any:
    """An annotation that shows itself as people would write it; none is left as it is."""
    return annotation if annotation is inspect.Parameter.empty else Written(legible(annotation))


def _default(value):
    if isinstance(value, tuple) and value and all(isinstance(kind, type) for kind in value):
        return Written(f"({', '.join(map(_name, value))})")
    return Written(value.__name__) if inspect.isfunction(value) else value
