"""An arm whose parameters are known, and what is believed of it."""

import jdyn


def planar_arm():
    """Two links that swing in a vertical plane, the second one at the end of the first."""
    builder = jdyn.Builder("arm")
    rest = {"damping": 0.3, "friction": 0.2, "friction_speed": 0.1, "armature": 0.05, "effort": 20.0}
    upper = {"mass": 2.0, "com": (0.2, 0.1, 0), "inertia": (0.03, 0.04, 0.05)}
    fore = {"mass": 1.0, "com": (0.2, 0, 0.05), "inertia": (0.01, 0.02, 0.02)}
    builder.add_link("upper", jdyn.Revolute((0, 1, 0)), joint_name="shoulder", **upper, **rest)
    builder.add_link(
        "fore", jdyn.Revolute((0, 1, 0)), parent="upper", placement=(0.5, 0, 0), joint_name="elbow", **fore, **rest
    )
    return builder.build()


def nominal_arm():
    """The same with a wrong mass and wrong friction."""
    return planar_arm().with_body("fore", mass=1.4).with_joint("shoulder", friction=0.6)
