"""Motions of rigid bodies by Drake, in a process of its own: `python benchmarks/drake_peer.py`.

It reads a line of JSON a request: first a motion (`Motion.told` of `benchmarks/rigid_motions.py`), then settings:
`method`, "cenic" with an accuracy or "sap" with a step as `setting`, `stiffness` [N/m] and `dissipation` [s/m]. It
answers with the poses at the end, shape (bodies, 4, 3), and the processor's seconds of the simulation, or with an
`error`. It needs `drake`, and not jdyn.
"""

import importlib.metadata
import json
import sys
import time
import warnings

import numpy as np

warnings.simplefilter("ignore")
from pydrake import all as drake  # noqa: E402


def shape(kind, size):
    return {
        "box": lambda: drake.Box(*size), "sphere": lambda: drake.Sphere(*size), "plane": drake.HalfSpace,
    }[kind]()  # fmt: skip


class World:
    """A motion as Drake has it."""

    def __init__(self, motion, method, setting, stiffness, dissipation):
        builder = drake.DiagramBuilder()
        step = setting if method == "sap" else 0.0
        self.plant, _ = drake.AddMultibodyPlantSceneGraph(builder, step)
        self.plant.mutable_gravity_field().set_gravity_vector(motion["gravity"])
        properties = drake.ProximityProperties()
        friction = drake.CoulombFriction(motion["friction"], motion["friction"])
        drake.AddContactMaterial(dissipation, stiffness, friction, properties)
        self.bodies = []
        for i, body in enumerate(motion["bodies"]):
            moments = drake.UnitInertia(*(np.array(body["inertia"]) / body["mass"]))
            inertia = drake.SpatialInertia(body["mass"], np.zeros(3), moments)
            self.bodies.append(self.plant.AddRigidBody(f"body{i}", inertia))
            self.plant.RegisterCollisionGeometry(
                self.bodies[-1], drake.RigidTransform(), shape(body["kind"], body["size"]), f"shape{i}", properties
            )
        self.plant.RegisterCollisionGeometry(
            self.plant.world_body(), drake.RigidTransform(), shape(*motion["ground"]), "ground", properties
        )
        if method == "sap":
            self.plant.set_discrete_contact_approximation(drake.DiscreteContactApproximation.kSap)
        self.plant.Finalize()
        self.simulator = drake.Simulator(builder.Build())
        if method != "sap":
            config = drake.SimulatorConfig(
                integration_scheme=method, max_step_size=0.1, accuracy=setting, use_error_control=True
            )
            drake.ApplySimulatorConfig(config, self.simulator)
        self.context = self.plant.GetMyMutableContextFromRoot(self.simulator.get_mutable_context())
        for body, given in zip(self.bodies, motion["bodies"], strict=True):
            self.plant.SetFreeBodyPose(self.context, body, drake.RigidTransform(given["position"]))
            velocity = drake.SpatialVelocity(np.array(given["spin"]), np.array(given["velocity"]))
            self.plant.SetFreeBodySpatialVelocity(body, velocity, self.context)
        self.simulator.Initialize()

    def end(self, t1):
        began = time.process_time()
        self.simulator.AdvanceTo(t1)
        seconds = time.process_time() - began
        poses = [self.plant.EvalBodyPoseInWorld(self.context, body) for body in self.bodies]
        rows = [[X.translation().tolist(), *X.rotation().matrix().tolist()] for X in poses]
        return {"poses": rows, "seconds": seconds}


def main():
    motion = json.loads(sys.stdin.readline())
    print(json.dumps({"version": importlib.metadata.version("drake")}), flush=True)
    for line in sys.stdin:
        try:
            found = World(motion, **json.loads(line)).end(motion["t1"])
        except RuntimeError as error:
            found = {"error": str(error)}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
