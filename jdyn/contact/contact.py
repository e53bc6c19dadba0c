"""What a simulation asks of a contact model."""

import abc
from typing import Any

import equinox as eqx

from jdyn.contact.colliders import Colliders


class ContactWarning(UserWarning):
    """Shapes overlap at the start so far that they will be thrown apart.

    >>> import warnings
    >>> with warnings.catch_warnings(action="error", category=jdyn.ContactWarning):
    ...     pass  # here a deep start is an error
    """


class Contact(eqx.Module):
    """How shapes of a model act on each other where they touch, as `jdyn.simulate` takes it.

    Numbers are leaves, so that they can be swept and differentiated.

    >>> isinstance(jdyn.CompliantContact(), jdyn.Contact)
    True
    """

    @abc.abstractmethod
    def check(self, colliders: Colliders):
        """Raise a ValueError about numbers that given shapes cannot have. Traced ones are not known."""

    @abc.abstractmethod
    def between(self, colliders: Colliders) -> Any:
        """The same for given shapes, which `VectorField.contact` holds."""
