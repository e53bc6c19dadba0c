"""Translates MuJoCo's compiled model to jdyn's builder."""

import numpy as np

from jdyn.io.mjcf_names import Names, body_names, joint_names
from jdyn.io.mjcf_pairs import GeomPairs
from jdyn.io.mjcf_source import Document
from jdyn.model import Ball, Builder, Fixed, Free, Joint, Mimic, Prismatic, Revolute, ShapeRole, Touching, pose
from jdyn.spatial import Transform
from jdyn.terminal.messages import enumerated

_NO_COLOR = (0.5, 0.5, 0.5, 1.0)


class Translation:
    """A compiled MuJoCo model, translated to a builder.

    Args:
        mujoco: The package.
        compiled: The `MjModel`.
        document: The document it was compiled from.
        floating_base: As for `load_mjcf`.

    Attributes:
        mujoco: The package.
        m: The `MjModel`.
        builder: The builder.
        bodies: Name of the link that represents each body.
        joints: Name of each joint.
        sites: Name of the frame that represents each site.
        plain_motors: Actuators that apply their control as torque on a hinge or force on a slide.
        couplings: Equalities that became mimic joints.
        shapeless: Geoms that have no shape here: meshes without a file, with a signed distance field, or sheared by
            `refquat` and a scale.
        pairs: Which geoms may touch.
        keyframes: The attributes of each keyframe, and where it is.
        unread: Names of sensors and skins that MuJoCo was not given.
    """

    def __init__(self, mujoco, compiled, document: Document, floating_base: bool | None):
        self.mujoco, self.m = mujoco, compiled
        gravity = (0.0, 0.0, 0.0) if self.disabled("GRAVITY") else _floats(self.m.opt.gravity)
        self.builder = Builder(document.name, gravity=gravity, source=document.label)
        self._files, self._references = document.files, _references(mujoco, document)
        self.keyframes, self.unread = document.keyframes, document.unread
        self._link_names, self._joint_names = Names("world"), Names()
        self.bodies = body_names(self._link_names, [self._given("body", body) for body in range(self.m.nbody)])
        given = [self._given("joint", joint) for joint in range(self.m.njnt)]
        self.joints = joint_names(self._joint_names, self.m, given, self.bodies)
        self.plain_motors = [i for i in range(self.m.nactuator) if self._is_plain_motor(i)]
        self.couplings: list[int] = []
        self._mimics = self._affine_equalities()
        self._freed, self._fixed = self._changed_bases(floating_base)
        for body in range(1, self.m.nbody):
            self._add_body(body)
        self.sites = [self._add_site(site) for site in range(self.m.nsite)]
        joints = [self.joint_count(body) for body in range(self.m.nbody)]
        self.pairs = GeomPairs(self.m, joints, not self.disabled("FILTERPARENT"))
        self._shape_names = self._names_of_shapes()
        self.collision_rows: dict[int, int] = {}
        self._shape_count = 0
        self.shapeless = [geom for geom in range(self.m.ngeom) if not self._add_geom(geom)]
        self._add_pairs()

    # Contents of the file.

    def disabled(self, *flags: str) -> bool:
        """Tell whether the file disables any of these parts of the simulation."""
        return any(self.m.opt.disableflags & getattr(self.mujoco.mjtDisableBit, f"mjDSBL_{flag}") for flag in flags)

    def name(self, kind: str, index: int) -> str:
        """The name of an element; its kind and number if it has none."""
        return self._given(kind, index) or f"{kind}{index}"

    def _given(self, kind: str, index: int) -> str | None:
        """The name of an element in the file."""
        return self.mujoco.mj_id2name(self.m, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), index)

    def is_screw(self, joint: int) -> bool:
        """Tell whether a joint is a hinge or a slide."""
        return int(self.m.jnt_type[joint]) in (self.mujoco.mjtJoint.mjJNT_HINGE, self.mujoco.mjtJoint.mjJNT_SLIDE)

    def moves_screw(self, actuator: int) -> bool:
        """Tell whether an actuator acts on one hinge or slide, and on nothing else."""
        kinds = self.mujoco.mjtTrn
        direct = int(self.m.actuator_trntype[actuator]) in (kinds.mjTRN_JOINT, kinds.mjTRN_JOINTINPARENT)
        return direct and self.is_screw(self.m.actuator_trnid[actuator, 0])

    def follows(self, joint: int) -> bool:
        """Tell whether a joint follows another one."""
        return joint in self._mimics

    def is_active(self, actuator: int) -> bool:
        """Tell whether an actuator is enabled; the file may disable its group, or all actuators."""
        group = int(self.m.actuator_group[actuator])
        return not self.disabled("ACTUATION") and not (0 <= group <= 30 and self.m.opt.disableactuator >> group & 1)

    # Base.

    def _changed_bases(self, floating: bool | None) -> tuple[set[int], set[int]]:
        """Bodies that get a free joint, and bodies that lose theirs."""
        m = self.m
        free = {int(m.jnt_bodyid[j]) for j in range(m.njnt) if int(m.jnt_type[j]) == self.mujoco.mjtJoint.mjJNT_FREE}
        if floating is None or (floating and free):
            return set(), set()
        if not floating:
            return set(), free
        roots = [body for body in range(1, m.nbody) if m.body_parentid[body] == 0]
        moving = {int(m.body_rootid[body]) for body in range(1, m.nbody) if m.body_jntnum[body]}
        candidates = [body for body in roots if body in moving] or roots
        if len(candidates) == 1 and not m.body_jntnum[candidates[0]]:
            return set(candidates), set()
        got = enumerated([f"{self.bodies[b]!r} ({m.body_jntnum[b]} joints)" for b in candidates]) or "none"
        self.builder.problem(f"floating_base=True needs one root body, without joints of its own; got {got}")
        return set(), set()

    # Bodies and joints.

    def _add_body(self, body: int):
        m = self.m
        parent, where = self.bodies[m.body_parentid[body]], self.pose(m.body_pos[body], m.body_quat[body])
        R = self._rotation(m.body_iquat[body])
        inertia = R @ np.diag(m.body_inertia[body]) @ R.T
        inertial = {"mass": m.body_mass[body], "com": m.body_ipos[body], "inertia": 0.5 * (inertia + inertia.T)}
        joints = range(m.body_jntadr[body], m.body_jntadr[body] + m.body_jntnum[body])
        if body in self._freed:
            name = self._joint_names.claim(self.bodies[body])
            self.builder.add_link(self.bodies[body], Free(), parent=parent, joint_name=name, **inertial)
        elif not joints or body in self._fixed:
            self._add_fixed(body, parent, where, inertial)
        else:
            self._add_chain(body, joints, parent, where, inertial)

    def last_anchor(self, body: int) -> np.ndarray:
        """Origin of the last joint of a body, in the body's frame."""
        joints = np.flatnonzero(self.m.jnt_bodyid == body) if body not in self._freed else []
        return self._anchor(int(joints[-1])) if len(joints) else np.zeros(3)

    def joint_count(self, body: int) -> int:
        """Number of joints that a body has in jdyn."""
        return 1 if body in self._freed else 0 if body in self._fixed else int(self.m.body_jntnum[body])

    def _add_fixed(self, body: int, parent: str, where: Transform, inertial: dict):
        name = self._joint_names.claim(self.bodies[body])
        self.builder.add_link(self.bodies[body], Fixed(), parent=parent, placement=where, joint_name=name, **inertial)

    def _add_chain(self, body: int, joints: range, parent: str, where: Transform, inertial: dict):
        """Add the joints of a body as a chain; each child frame has the body's axes, and its origin at the anchor."""
        # `where` is the pose in `parent` of a frame with the body's axes and its origin at `anchor`.
        anchor = np.zeros(3)
        for joint in joints:
            position = self._anchor(joint)
            last = joint == joints[-1] and not np.any(position)
            link = self.bodies[body] if last else self._link_names.claim(f"{self.bodies[body]}/{self.joints[joint]}")
            self.builder.add_link(
                link,
                self._kind(joint),
                parent=parent,
                placement=self._placement(joint, where @ pose(position - anchor)),
                joint_name=self.joints[joint],
                mimic=self._mimics.get(joint),
                **self._properties(joint),
                **(inertial if last else {}),
            )
            parent, anchor, where = link, position, pose()
        if np.any(anchor):
            self._add_fixed(body, parent, pose(-anchor), inertial)

    def _anchor(self, joint: int) -> np.ndarray:
        """The point of the body, in body axes, about which the joint turns; the origin for other joints."""
        return self.m.jnt_pos[joint] if isinstance(self._kind(joint), Revolute | Ball) else np.zeros(3)

    def _kind(self, joint: int) -> Joint:
        kinds, axis = self.mujoco.mjtJoint, self.m.jnt_axis[joint]
        match int(self.m.jnt_type[joint]):
            case kinds.mjJNT_FREE:
                return Free()
            case kinds.mjJNT_BALL:
                return Ball()
            case kinds.mjJNT_SLIDE:
                return Prismatic(axis)
            case _:
                return Revolute(axis)

    def _placement(self, joint: int, where: Transform) -> Transform:
        """Pose of the joint frame, corrected for `ref`: in MuJoCo, the joint coordinate of the pose in the file."""
        m, kind = self.m, self._kind(joint)
        reference, axis = m.qpos0[m.jnt_qposadr[joint]], m.jnt_axis[joint]
        if isinstance(kind, Free):
            return pose()
        if isinstance(kind, Ball) or reference == 0:
            return where
        if isinstance(kind, Prismatic):
            return where @ pose(-reference * axis)
        turn = np.zeros(4)
        self.mujoco.mju_axisAngle2Quat(turn, axis, -reference)
        return where @ self.pose(np.zeros(3), turn)

    def _properties(self, joint: int) -> dict:
        m, kind = self.m, self._kind(joint)
        dofs = slice(m.jnt_dofadr[joint], m.jnt_dofadr[joint] + kind.nv)
        coordinates = slice(m.jnt_qposadr[joint], m.jnt_qposadr[joint] + kind.nq)
        armature, damping = self._of_actuators(joint)
        # MuJoCo's free joint has its linear coordinates first.
        first = 3 if isinstance(kind, Free) else 0
        friction = np.zeros(kind.nv) if self.disabled("FRICTIONLOSS", "CONSTRAINT") else m.dof_frictionloss[dofs]
        return {
            "armature": np.roll(m.dof_armature[dofs], first) + armature,
            "damping": 0.0 if self.disabled("DAMPER") else np.roll(m.dof_damping[dofs], first) + damping,
            "friction": np.roll(friction, first),
            "stiffness": 0.0 if self.disabled("SPRING") else m.jnt_stiffness[joint],
            "rest": m.qpos_spring[coordinates],
            **(self._limits(joint) if self.is_screw(joint) else self._largest_turn(joint)),
        }

    def _limits(self, joint: int) -> dict:
        m = self.m
        efforts = [self._largest_effort(i) for i in self.plain_motors if m.actuator_trnid[i, 0] == joint]
        effort = sum(efforts) if efforts else np.inf
        if m.jnt_actfrclimited[joint]:
            effort = min(effort, np.max(np.abs(m.jnt_actfrcrange[joint])))
        lower, upper = m.jnt_range[joint]
        # MuJoCo silently drops a range with swapped ends; keep it, so that the builder refuses it.
        if not m.jnt_limited[joint] and lower <= upper:
            lower, upper = -np.inf, np.inf
        return {"lower": lower, "upper": upper, "effort": effort}

    def _largest_turn(self, joint: int) -> dict:
        """Largest angle of a ball joint."""
        return {"upper": np.max(self.m.jnt_range[joint])} if self.m.jnt_limited[joint] else {}

    # Actuators.

    def _is_plain_motor(self, actuator: int) -> bool:
        m, mj = self.m, self.mujoco
        return (
            self.is_active(actuator)
            and self.moves_screw(actuator)
            and int(m.actuator_gaintype[actuator]) == mj.mjtGain.mjGAIN_FIXED
            and int(m.actuator_biastype[actuator]) == mj.mjtBias.mjBIAS_NONE
            and int(m.actuator_dyntype[actuator]) == mj.mjtDyn.mjDYN_NONE
            and m.actuator_plugin[actuator] < 0
        )

    def _gear(self, actuator: int) -> float:
        return self.m.actuator_gear[self.m.actuator_outadr[actuator], 0]

    def _largest_effort(self, motor: int) -> float:
        """The largest generalized force of a plain motor, in either direction."""
        m, force, control = self.m, np.inf, self.m.actuator_ctrladr[motor]
        if m.actuator_ctrllimited[control] and not self.disabled("CLAMPCTRL"):
            force = abs(m.actuator_gainprm[motor, 0]) * np.max(np.abs(m.actuator_ctrlrange[control]))
        if m.actuator_forcelimited[motor]:
            force = min(force, np.max(np.abs(m.actuator_forcerange[motor])))
        gear = abs(self._gear(motor))
        return gear * force if gear else 0.0

    def _of_actuators(self, joint: int) -> tuple[float, float]:
        """Armature and damping that actuators add to a hinge or slide through their gears."""
        m = self.m
        acting = [i for i in range(m.nactuator) if self.moves_screw(i) and m.actuator_trnid[i, 0] == joint]
        squares = np.array([self._gear(i) ** 2 for i in acting])
        return squares @ m.actuator_armature[acting], squares @ m.actuator_damping[acting]

    # Couplings.

    def _affine_equalities(self) -> dict[int, Mimic]:
        """Equalities q1 - ref1 = c0 + c1 (q2 - ref2) of hinges and slides, by follower joint."""
        m, leaders = self.m, {}
        mimics: dict[int, Mimic] = {}
        for equality in [] if self.disabled("EQUALITY", "CONSTRAINT") else range(m.neq):
            follower, leader = int(m.eq_obj1id[equality]), int(m.eq_obj2id[equality])
            if not self._is_affine(equality) or follower in leaders or _leads_to(leaders, leader, follower):
                continue
            leaders[follower] = leader
            constant, ratio = m.eq_data[equality, :2]
            reference = m.qpos0[m.jnt_qposadr[[follower, leader]]]
            offset = reference[0] + constant - ratio * reference[1]
            mimics[follower] = Mimic(self.joints[leader], float(ratio), float(offset))
            self.couplings.append(equality)
        return mimics

    def _is_affine(self, equality: int) -> bool:
        m = self.m
        if int(m.eq_type[equality]) != self.mujoco.mjtEq.mjEQ_JOINT or not m.eq_active0[equality]:
            return False
        first, second = m.eq_obj1id[equality], m.eq_obj2id[equality]
        return (
            second >= 0
            and self.is_screw(first)
            and self.is_screw(second)
            and not np.any(m.eq_data[equality, 2:5])
        )  # fmt: skip

    # Frames and shapes.

    def _add_site(self, site: int) -> str:
        m = self.m
        name, body = self._link_names.claim(self.name("site", site)), self.bodies[m.site_bodyid[site]]
        self.builder.add_frame(name, body, self.pose(m.site_pos[site], m.site_quat[site]))
        return name

    def _add_geom(self, geom: int) -> bool:
        """Add the shape of a geom, once to draw it and once to let it touch; whether there is one."""
        m, kinds = self.m, self.mujoco.mjtGeom
        size, where = m.geom_size[geom], self.pose(m.geom_pos[geom], m.geom_quat[geom])
        path = heights = None
        match int(m.geom_type[geom]):
            case kinds.mjGEOM_SPHERE:
                kind, size = "sphere", size[:1]
            case kinds.mjGEOM_BOX:
                kind, size = "box", 2 * size
            case kinds.mjGEOM_ELLIPSOID:
                kind = "ellipsoid"
            case kinds.mjGEOM_PLANE:
                kind, size = "plane", 2 * size[:2]
            case kinds.mjGEOM_CYLINDER:
                kind, size = "cylinder", size[:2] * (1, 2)
            case kinds.mjGEOM_CAPSULE:
                kind, size = "capsule", size[:2] * (1, 2)
            case kinds.mjGEOM_HFIELD:
                kind, (size, heights) = "height field", self._height_field(m.geom_dataid[geom])
            case kinds.mjGEOM_MESH if (path := self._mesh_path(mesh := m.geom_dataid[geom])) is not None:
                kind, size, of_file = "mesh", m.mesh_scale[mesh], self._file_pose(mesh)
                if of_file is None:
                    return False
                # MuJoCo moves the vertices to the mesh's centre and principal axes.
                where = where @ self.pose(m.mesh_pos[mesh], m.mesh_quat[mesh]).inverse() @ of_file
            case _:
                return False
        bits = (int(getattr(m, f"geom_{key}")[geom]) for key in ("contype", "conaffinity", "condim", "priority"))
        touching = Touching(m.geom_friction[geom], *bits, margin=max(float(m.geom_margin[geom]), 0.0))
        about = {"name": self._shape_names[geom], "color": self._color(geom), "heights": heights, "touching": touching}
        for role in self._roles(geom):
            link = self.bodies[m.geom_bodyid[geom]]
            self.builder.add_shape(link, kind, size, placement=where, role=role, path=path, **about)
            if role == "collision":
                self.collision_rows[geom] = self._shape_count
            self._shape_count += 1
        return True

    def _add_pairs(self):
        """Say which shapes touch, and which do not, against jdyn's own rules."""
        for pair in self.pairs.excluded:
            self.builder.exclude(*(self.bodies[body] for body in pair))
        for pair in self.pairs.included:
            if not any(geom in self.shapeless for geom in pair):
                names = (str(self._shape_names[geom]) for geom in pair)
                self.builder.include(*names, friction=self.pairs.friction.get(pair))

    def _names_of_shapes(self) -> list[str | None]:
        """Names of the geoms; pairs need names of theirs, others may be called after their links."""
        given = [self._given("geom", geom) for geom in range(self.m.ngeom)]
        names, paired = (
            Names(*filter(None, given), *self.bodies),
            {geom for pair in self.pairs.included for geom in pair},
        )
        return [
            names.claim(f"geom{geom}") if name is None and geom in paired else name for geom, name in enumerate(given)
        ]

    def _roles(self, geom: int) -> list[ShapeRole]:
        """Roles of a geom. MuJoCo's viewers draw groups 0 to 2, unless one asks for more; robots keep what touches, and
        is not to be seen, in group 3."""
        m = self.m
        touches = m.geom_contype[geom] or m.geom_conaffinity[geom] or geom in (*m.pair_geom1, *m.pair_geom2)
        roles: list[ShapeRole] = []
        if m.geom_group[geom] <= 2:
            roles.append("visual")
        if touches:
            roles.append("collision")
        return roles

    def _color(self, geom: int) -> tuple[float, ...] | None:
        """The geom's own colour, else its material's; grey is what MuJoCo gives to geoms without one."""
        m, material = self.m, self.m.geom_matid[geom]
        own = m.geom_rgba[geom]
        if np.array_equal(own, _NO_COLOR) and material < 0:
            return None
        return _floats(np.clip(m.mat_rgba[material] if np.array_equal(own, _NO_COLOR) else own, 0, 1))

    def _mesh_path(self, mesh: int) -> str | None:
        start = self.m.mesh_pathadr[mesh]
        return self._files.get(self.m.paths[start:].split(b"\0")[0].decode()) if start >= 0 else None

    def _height_field(self, field: int) -> tuple[np.ndarray, np.ndarray]:
        """Lengths of the sides of a height field, and its heights."""
        m = self.m
        rows, columns, start = m.hfield_nrow[field], m.hfield_ncol[field], m.hfield_adr[field]
        heights = m.hfield_data[start : start + rows * columns].reshape(rows, columns).astype(float)
        return 2 * m.hfield_size[field, :2], m.hfield_size[field, 2] * heights

    def _file_pose(self, mesh: int) -> Transform | None:
        """The pose of a file's frame in that of its mesh, whose vertices are S Rᵀ (x - p) for the file's x, with the
        scale S and p, R from `refpos` and `refquat`; None where that also shears."""
        if mesh not in self._references:
            return pose()
        scale, reference = self.m.mesh_scale[mesh], self.pose(*self._references[mesh])
        turned = np.asarray(reference.rotation).T
        if not (np.allclose(scale, scale[0]) or np.allclose(turned, np.eye(3))):
            return None
        return Transform(turned, -scale * (turned @ reference.translation))  # type: ignore[arg-type]

    # Poses.

    def _rotation(self, quaternion: np.ndarray) -> np.ndarray:
        matrix = np.zeros(9)
        self.mujoco.mju_quat2Mat(matrix, quaternion)
        return matrix.reshape(3, 3)

    def pose(self, position: np.ndarray, quaternion: np.ndarray) -> Transform:
        """A pose from MuJoCo's numbers."""
        return Transform(self._rotation(quaternion), position)  # type: ignore[arg-type]


def _floats(array) -> tuple[float, ...]:
    return tuple(np.ravel(array).tolist())


def _references(mujoco, document: Document) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Meshes with a `refpos` or `refquat`, which the compiled model no longer has, and what these are."""
    if "refpos=" not in document.text and "refquat=" not in document.text:
        return {}
    meshes = mujoco.MjSpec.from_string(document.text, assets=document.assets).meshes
    return {i: (mesh.refpos, mesh.refquat / np.linalg.norm(mesh.refquat)) for i, mesh in enumerate(meshes)}


def _leads_to(leaders: dict[int, int], joint: int, sought: int) -> bool:
    """Tell whether `sought` is `joint`, or a direct or indirect leader of `joint`."""
    while joint != sought and joint in leaders:
        joint = leaders[joint]
    return joint == sought
