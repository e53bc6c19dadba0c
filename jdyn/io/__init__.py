"""Robot files to models and back. Besides `jdyn.sweep`'s store, the only floor that touches the disk."""

from jdyn.io.mjcf import load_mjcf as load_mjcf
from jdyn.io.urdf import load_urdf as load_urdf
from jdyn.io.urdf_writer import save_urdf as save_urdf
