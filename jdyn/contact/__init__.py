"""Robots that touch: which shapes may, where they do, and with what forces."""

from jdyn.contact.colliders import Colliders as Colliders
from jdyn.contact.colliders import colliders as colliders
from jdyn.contact.points import contact_points as contact_points
