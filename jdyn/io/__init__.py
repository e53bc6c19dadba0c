"""Robot files to models and back. The only layer that accesses the disk, apart from `jdyn.sweep`'s store."""

from jdyn.io.mjcf import load_mjcf as load_mjcf
from jdyn.io.mjcf import load_mjcf_configurations as load_mjcf_configurations
from jdyn.io.mjcf import load_mjcf_constraints as load_mjcf_constraints
from jdyn.io.mjcf import load_mjcf_mocap_poses as load_mjcf_mocap_poses
from jdyn.io.mjcf import load_mjcf_scene as load_mjcf_scene
from jdyn.io.mjcf_writer import write_mjcf as write_mjcf
from jdyn.io.scene import Scene as Scene
from jdyn.io.sdf import load_sdf as load_sdf
from jdyn.io.sdf import load_sdf_configurations as load_sdf_configurations
from jdyn.io.sdf import load_sdf_constraints as load_sdf_constraints
from jdyn.io.sdf import load_sdf_scene as load_sdf_scene
from jdyn.io.srdf_configurations import load_srdf_configurations as load_srdf_configurations
from jdyn.io.urdf import load_urdf as load_urdf
from jdyn.io.urdf_scene import load_urdf_scene as load_urdf_scene
from jdyn.io.urdf_writer import save_urdf as save_urdf
