"""Contact: laws, materials, distances, ray casts and times of contact.

>>> soft = jdyn.CompliantContact(material=jdyn.contact.Material(stiffness=1e4, friction=0.8))
>>> print(soft.material.friction)
0.8
"""

from jdyn.contact import Contact as Contact
from jdyn.contact import ContactForces as ContactForces
from jdyn.contact import ContactWarning as ContactWarning
from jdyn.contact import Distances as Distances
from jdyn.contact import EarliestContacts as EarliestContacts
from jdyn.contact import FirstContact as FirstContact
from jdyn.contact import GradientPolicy as GradientPolicy
from jdyn.contact import HuntCrossley as HuntCrossley
from jdyn.contact import Material as Material
from jdyn.contact import PointForces as PointForces
from jdyn.contact import RigidMaterial as RigidMaterial
from jdyn.contact import SpringDamper as SpringDamper
from jdyn.contact import StepPolicy as StepPolicy
from jdyn.contact import SweptBoxes as SweptBoxes
from jdyn.contact import TouchingPoints as TouchingPoints
from jdyn.contact import TwoStiffnesses as TwoStiffnesses
from jdyn.contact import collision_pairs as collision_pairs
from jdyn.contact import decompose as decompose
from jdyn.contact import distances as distances
from jdyn.contact import earliest_contact as earliest_contact
from jdyn.contact import earliest_contacts as earliest_contacts
from jdyn.contact import first_contact as first_contact
from jdyn.contact import may_touch as may_touch
from jdyn.contact import ray_cast as ray_cast
from jdyn.contact import swept_boxes as swept_boxes
from jdyn.contact import time_of_contact as time_of_contact
from jdyn.model import Touching as Touching
from jdyn.sensors import RayHits as RayHits
