"""Robots that touch: which shapes may, where they do, and with what forces."""

from jdyn.contact.colliders import Colliders as Colliders
from jdyn.contact.colliders import colliders as colliders
from jdyn.contact.compliant import CompliantContact as CompliantContact
from jdyn.contact.contact import Contact as Contact
from jdyn.contact.contact import ContactForces as ContactForces
from jdyn.contact.contact import ContactWarning as ContactWarning
from jdyn.contact.contact import PointForces as PointForces
from jdyn.contact.contact import SmoothForces as SmoothForces
from jdyn.contact.contact import TouchingPoints as TouchingPoints
from jdyn.contact.contacts import Contacts as Contacts
from jdyn.contact.contacts import generalized_forces as generalized_forces
from jdyn.contact.contacts import named_contacts as named_contacts
from jdyn.contact.convex import ConvexContact as ConvexContact
from jdyn.contact.convex import ConvexForces as ConvexForces
from jdyn.contact.decomposition import decompose as decompose
from jdyn.contact.distances import Distances as Distances
from jdyn.contact.distances import collision_pairs as collision_pairs
from jdyn.contact.distances import distances as distances
from jdyn.contact.laws import ContactLaw as ContactLaw
from jdyn.contact.laws import HuntCrossley as HuntCrossley
from jdyn.contact.laws import SpringDamper as SpringDamper
from jdyn.contact.laws import TwoStiffnesses as TwoStiffnesses
from jdyn.contact.materials import Material as Material
from jdyn.contact.points import Overlap as Overlap
from jdyn.contact.points import contact_points as contact_points
from jdyn.contact.time_of_contact import time_of_contact as time_of_contact
