"""The builder: what it makes of links, and what it refuses, all at once and by name."""

import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile

SOLID = {"mass": 1.0, "com": (0.1, 0, 0), "inertia": (0.02, 0.03, 0.04)}
HINGE = jdyn.Revolute((0, 0, 1))


def build(*links, **options):
    """A robot from (name, joint, changes) triples."""
    builder = jdyn.Builder("robot", **options)
    for name, joint, changes in links:
        builder.add_link(name, joint, **SOLID | changes)
    return builder.build()


def test_fixed_links_are_lumped_and_live_on_as_frames():
    rotation = jdyn.pose(rpy=(0.4, -0.3, 1.0)).rotation
    model = build(
        ("arm", HINGE, {}),
        ("plate", jdyn.Fixed(), {"parent": "arm", "placement": jdyn.Transform(rotation, np.array([0.5, 0.1, 0.2]))}),
        ("tip", jdyn.Fixed(), {"parent": "plate", "placement": (0, 0, 0.3), "mass": 0.5, "inertia": 0.0}),
    )
    assert model.body_names == ("arm",) and model.frame_names == ("plate", "tip")

    # By the parallel axis theorem, about the hinge and along its axis z.
    def about_z(mass, inertia, com):
        return inertia[2, 2] + mass * (com[0] ** 2 + com[1] ** 2)

    plate_com = np.array([0.5, 0.1, 0.2]) + rotation @ np.array([0.1, 0, 0])
    tip_com = np.array([0.5, 0.1, 0.2]) + rotation @ np.array([0.1, 0, 0.3])
    I = np.diag([0.02, 0.03, 0.04])
    expected = (
        about_z(1, I, (0.1, 0, 0)) + about_z(1, rotation @ I @ rotation.T, plate_com) + about_z(0.5, 0 * I, tip_com)
    )
    np.testing.assert_allclose(jdyn.mass_matrix(model, [0.0]), [[expected]], rtol=1e-14)
    np.testing.assert_allclose(
        jdyn.frame_pose(model, [0.0], "tip").translation, np.array([0.5, 0.1, 0.2]) + 0.3 * rotation[:, 2], atol=1e-15
    )


def test_directions_get_unit_length():
    model = build(("arm", jdyn.Revolute((0, 0, 5)), {}))
    np.testing.assert_array_equal(model.joints[0].axis, [[0, 0, 1]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mass": -1.0}, r"link 'arm': mass is -1, expected a number that is not negative"),
        ({"mass": np.nan}, r"link 'arm': inertial parameters must be finite"),
        (
            {"inertia": (0.1, -0.1, 0.1)},
            r"link 'arm': principal moments of inertia are -0.1, .* expected none below zero",
        ),
        (
            {"inertia": np.array([[1, 0.1, 0], [0, 1, 0], [0, 0, 1]])},
            r"link 'arm': the inertia matrix is not symmetric",
        ),
        ({"parent": "nobody"}, r"joint 'arm': parent link 'nobody' does not exist"),
        ({"placement": (np.inf, 0, 0)}, r"joint 'arm': placement must be finite"),
        ({"placement": jdyn.Transform(2 * np.eye(3), np.zeros(3))}, r"placement is not a rotation and a translation"),
        ({"damping": -0.1}, r"joint 'arm': damping is -0.1, expected a number that is not negative"),
        ({"friction_speed": 0.0}, r"friction_speed is 0.0, expected a positive number"),
        ({"armature": np.inf}, r"armature is inf, expected finite numbers"),
        ({"lower": 1.0, "upper": -1.0}, r"lower limit 1.0 is above the upper limit -1.0"),
        ({"stiffness": (1.0, 2.0)}, r"stiffness has shape \(2,\), expected a number or 1 of them"),
        ({"mimic": jdyn.Mimic("nobody")}, r"mimics joint 'nobody', which does not exist"),
        ({"mimic": jdyn.Mimic("arm")}, r"mimic joints form a cycle: arm -> arm"),
    ],
)
def test_impossible_values_are_refused_by_name(changes, message):
    with pytest.raises(jdyn.ModelError, match=message):
        build(("arm", HINGE, changes))


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ((("arm", HINGE, {}), ("arm", HINGE, {})), "name 'arm' is used 2 times"),
        ((("a", HINGE, {"parent": "b"}), ("b", HINGE, {"parent": "a"})), r"links form a cycle: \w -> \w -> \w"),
        ((("arm", jdyn.Revolute((0, 0, 0)), {}),), "axis is zero, expected a direction"),
        ((("arm", jdyn.Revolute((0, np.nan, 0)), {}),), "expected finite numbers"),
        ((("arm", jdyn.Universal((0, 0, 1), (0, 0, -2)), {}),), "axis and axis2 are parallel"),
        ((("arm", jdyn.Planar((0, 0, 1), (0, 0, 2)), {}),), "normal and x are parallel"),
        ((("arm", jdyn.Ball(), {"rest": 0.0}),), "expected a configuration with a quaternion"),
        ((("arm", jdyn.Revolute((1, 0)), {}),), r"axis has shape \(2,\), expected \(3,\)"),
        ((("a", jdyn.Ball(), {}), ("b", HINGE, {"mimic": jdyn.Mimic("a")})), "exactly one degree of freedom"),
    ],
)
def test_impossible_mechanisms_are_refused_by_name(links, message):
    with pytest.raises(jdyn.ModelError, match=message):
        build(*links)


def test_all_problems_come_in_one_message():
    with pytest.raises(jdyn.ModelError, match="robot: 3 problems") as raised:
        build(("arm", HINGE, {"mass": -1.0, "parent": "nobody"}), ("hand", HINGE, {"parent": "arm", "damping": -1.0}))
    assert all(text in str(raised.value) for text in ("mass is -1", "'nobody'", "damping is -1"))


def test_what_is_suspicious_is_warned_of_once():
    with pytest.warns(
        jdyn.ModelWarning, match=r"2 warnings\n(.|\n)*exceeds the sum(.|\n)*no mass on or beyond"
    ) as caught:
        build(
            ("flat", HINGE, {"inertia": (0.1, 0.1, 0.5)}),
            ("bare", HINGE, {"parent": "flat", "mass": 0.0, "inertia": 0}),
        )
    assert len(caught) == 1


def test_misshapen_inertias_are_refused_where_they_are_written():
    with pytest.raises(ValueError, match=r"link 'arm': expected com of shape .* got \(3,\) and \(2, 2\)"):
        build(("arm", HINGE, {"inertia": np.ones((2, 2))}))


def test_unknown_properties_are_refused_where_they_are_written():
    with pytest.raises(TypeError, match="unknown properties dampin"):
        build(("arm", HINGE, {"dampin": 1.0}))


def test_random_trees_are_seeded_and_have_every_kind():
    first, again, other = (jdyn.random_tree(seed, 12) for seed in (5, 5, 6))
    assert first.topology == again.topology and len(set(first.topology.kinds)) == 8
    np.testing.assert_array_equal(first.inertias.mass, again.inertias.mass)
    assert not np.array_equal(first.inertias.mass, other.inertias.mass)
