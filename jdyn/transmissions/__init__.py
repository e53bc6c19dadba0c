"""Transmissions: lengths by which actuators and springs act on several joints, and their moment arms."""

from jdyn.transmissions.transmission import Transmission as Transmission
