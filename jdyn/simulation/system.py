"""Everything that is simulated, in one PyTree."""

import diffrax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Scalar

from jdyn.simulation.fixed_step import StepInfo, fixed_step
from jdyn.simulation.linearized_step import LinearizedStep, linearized_step
from jdyn.simulation.parts import Parts
from jdyn.simulation.sensing import Values, sense
from jdyn.simulation.sensor_memory import SENSOR_MEMORY, first_memory, sampled
from jdyn.simulation.state import State
from jdyn.terminal.messages import short


class System(Parts):
    """A mechanism with all that acts on it. Every number is a leaf: it can be swept, batched and differentiated.

    >>> model = jdyn.load("pendulum")
    >>> system = jdyn.System(model, controller=jdyn.PD(model, jnp.ones(1), kp=50.0, kd=10.0))
    >>> motion = jdyn.simulate(system, system.state(jnp.zeros(1)), 2.0)
    >>> print(motion.q[-1].round(2))
    [0.92]

    Attributes:
        model: The mechanism.
        controller: `controller(t, q, v) -> tau`, or a `jdyn.control.DynamicController` with a memory; no torque if
            None. Where there are actuators it gives their commands, in their order; zeros if None, which a trajectory
            says where it is printed.
        actuators: Motors, servos and muscles between the controller and the mechanism, such as
            `jdyn.actuators.PositionServo("elbow", kp=100.0)`; if there are none, the controller acts itself.
        contact: How shapes of the model push each other where they touch, `jdyn.CompliantContact()` or
            `jdyn.ConvexContact()`; they pass through each other if None.
        elements: Forces that depend on time, motion and states of their own: `jdyn.elements.PointSpring`,
            `jdyn.elements.Drag`, `jdyn.elements.FrameForce`, or a `jdyn.ForceElement` of yours.
        constraints: Beyond the tree of joints: `jdyn.constraints.Connect`, `jdyn.constraints.Weld`,
            `jdyn.constraints.Gear`, `jdyn.constraints.PrescribedJoint` and others.
        joint_limits: Springs, `jdyn.CompliantLimits()`, or impacts, `jdyn.ImpactLimits(restitution=0.5)`, that hold
            joints within their limits; nothing does if None.
        method: Forward-dynamics method; `jdyn.ABA()` if None.
        sensors: Named outputs, `jdyn.sensors.Accelerometer("imu", "hand")` and others, or a `jdyn.sensors.Sensor` of
            yours: for `sense`, for `step` and for `Trajectory.sensors`.
        configurations: Configurations by name [rad or m], for `state`.

    Raises:
        ValueError: if a part is something else.
    """

    def state(
        self, q: Float[Array, " nq"] | str | None = None, v: Float[Array, " nv"] | None = None, *, t: ArrayLike = 0.0
    ) -> State:
        """A state of the system, with what its controller remembers where a motion starts, states of its elements, and
        what sensors that show the past measure there.

        Args:
            q: Configuration [rad or m], or the name of one; quaternions are scaled to unit length. If left out, that
                in which a MuJoCo or SDF file is written, `"qpos0"`, or else the neutral one.
            v: Velocity [rad/s or m/s]; at rest if left out.
            t: Time of the start [s].

        Raises:
            ValueError: if a size disagrees with the model, or no configuration has that name.
        """
        state = super().state(q, v, t=t)
        if not (of_past := sampled(self.sensors)):
            return state
        measured = sense(self.but(sensors=tuple(of_past)), state, None, jnp.asarray(t, self.model.dtype))
        return State(state.q, state.v, state.parts | {SENSOR_MEMORY: first_memory(of_past, measured)})

    def step(
        self,
        state: State,
        action: Float[ArrayLike, " nu"] | None = None,
        dt: ArrayLike = 0.002,
        *,
        t: ArrayLike = 0.0,
        solver: diffrax.AbstractSolver | None = None,
    ) -> tuple[State, StepInfo]:
        """Take one step of a given length, as environments and controllers with a fixed rate do.

        Works under `jit`, `vmap`, `jvp` and `grad`, and inside `jax.lax.scan`. Nobody judges its error: `jdyn.simulate`
        does. A controller that ticks does so once, at the end of the step, if a tick is due by then; steps should be no
        longer than its period.

        >>> model = jdyn.load("pendulum")
        >>> system = jdyn.System(model, joint_limits=jdyn.CompliantLimits())
        >>> state = system.state(jnp.array([1.0]))
        >>> for _ in range(100):
        ...     state, info = system.step(state, jnp.array([0.5]), dt=0.01)
        >>> print(state.q.round(3), info.result == jdyn.Result.success)
        [-0.66] True

        Args:
            state: Where it begins, see `state`; it has to meet the constraints.
            action: Commands of the actuators during the step, which are added to those of the controller; generalized
                forces [N m or N], shape (nv,), if the system has no actuators. None if left out.
            dt: Length of the step [s], positive.
            t: Time at which it begins [s].
            solver: If left out, `jdyn.solvers.ConvexEuler(rows=1)` with convex contact, `jdyn.solvers.MoreauEuler()`
                with rigid contact, and else `jdyn.solvers.Automatic()`, whose step is implicit in contact and in the
                forces of joints. `jdyn.solvers.SemiImplicitEuler()` evaluates forces once.

        Returns:
            The state at the end, and what the step shows beside it.

        Raises:
            ValueError: if a size disagrees with the model, the state is of another system, a known `dt` is not
                positive, or the system looks for instants: impacts of joints, and contact with `located=True`, are
                events.
        """
        _check_state(state)
        h, t = self._span(dt, t)
        return fixed_step(self, state, None if action is None else jnp.asarray(action), h, t, solver)

    def linearize_step(
        self,
        state: State,
        action: Float[ArrayLike, " nu"] | None = None,
        dt: ArrayLike = 0.002,
        *,
        t: ArrayLike = 0.0,
        solver: diffrax.AbstractSolver | None = None,
    ) -> LinearizedStep:
        """A, B, C and D of `step`: how small deviations from it evolve, and what sensors show of them.

        For a deviation x from the state and u from the action, that of the state at the end is A x + B u, and that of
        the sensors at the start, see `sense`, is C x + D u. x = [e; w; z] stacks the tangent vector e that leads to the
        deviating configuration, `model.difference`, the deviation w of the velocity, and that of all other parts of the
        state, such as those of actuators, in the order of their leaves: `LinearizedStep.state_names`. At the end of the
        step it stands for the deviation from the state there.

        By forward differentiation of `step`, in one program; works under `jit` and `vmap`. Actuators, contact,
        constraints, force elements and the controller are all part of it. Where the motion has kinks, such as contact
        that begins, derivatives are those of the branch that the step takes.

        A and B are exact for the step as it is, with one exception: with compliant contact, or force elements that
        couple joints, stages of the default solver are implicit by slopes of which no derivative is taken. The
        difference is of the order of the error of the step: for a ball on the ground 1e-3 of A for a step of 4 ms, and
        1e-5 for one of 2 ms. `jdyn.linearize` gives the matrices of a model in continuous time.

        A discrete linear-quadratic regulator that keeps a pole upright:

        >>> push = jdyn.actuators.Motor("rail", strength=10.0)
        >>> system = jdyn.System(jdyn.load("cartpole"), actuators=[push])
        >>> upright = system.state(jnp.zeros(2))
        >>> step = system.linearize_step(upright, dt=0.02)
        >>> A, B, Q, R = step.A, step.B, jnp.eye(4), jnp.eye(1)
        >>> P = Q
        >>> for _ in range(500):
        ...     K = jnp.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        ...     P = Q + A.T @ P @ (A - B @ K)
        >>> state = system.state(jnp.array([0.0, 0.1]))
        >>> for _ in range(300):
        ...     x = jnp.concatenate([system.model.difference(upright.q, state.q), state.v])
        ...     state, info = system.step(state, -K @ x, dt=0.02)
        >>> print(step.state_names, jnp.abs(state.q).max() < 0.01)
        ('q.rail', 'q.hinge', 'v.rail', 'v.hinge') True

        Args:
            state: Where the step begins, see `state`; it has to meet the constraints. Parts that it lacks start anew.
            action: As for `step`; zero if left out.
            dt: Length of the step [s], positive.
            t: Time at which it begins [s].
            solver: As for `step`.

        Returns:
            `A`, `B`, `C` and `D`; `end`, the state at the end of the step; `sensors`, values at its start, by name;
            `result`, as in `step`; `state_names`, `action_names` and `sensor_names`, of the entries of x and u and of
            what C x + D u is added to, the values of all sensors in the order of the system.

        Raises:
            ValueError: as for `step` and `sense`.
        """
        _check_state(state)
        h, t = self._span(dt, t)
        return linearized_step(self, state, None if action is None else jnp.asarray(action), h, t, solver)

    def sense(self, state: State, action: Float[ArrayLike, " nu"] | None = None, *, t: ArrayLike = 0.0) -> Values:
        """Values of all sensors in one state, by name.

        Works under `jit`, `vmap`, `jvp` and `grad`. Accelerations and forces are those of the state; `step` and
        trajectories know contact forces of steps, which differ for `jdyn.ConvexContact`.

        >>> model = jdyn.load("pendulum")
        >>> system = jdyn.System(model, sensors=[jdyn.sensors.Accelerometer("imu", "tip")])
        >>> print(system.sense(system.state())["imu"].round(2) + 0.0)
        [0.   0.   9.81]

        Args:
            state: See `state`.
            action: As for `step`.
            t: Time [s].

        Raises:
            ValueError: if a size disagrees with the model, the state is of another system, or a sensor asks for what
                the model does not have.
        """
        _check_state(state)
        action = None if action is None else jnp.asarray(action)
        return sense(self, state, action, jnp.asarray(t, self.model.dtype)) if self.sensors else {}

    def _span(self, dt: ArrayLike, t: ArrayLike) -> tuple[Scalar, Scalar]:
        """Length and start of a step, as arrays: numbers of Python would be parts of the program."""
        h, t = (jnp.asarray(x, self.model.dtype) for x in (dt, t))
        if h.shape or t.shape:
            raise ValueError(f"dt and t: expected scalars, got shapes {h.shape} and {t.shape}")
        if not isinstance(h, Tracer) and not h > 0:
            raise ValueError(f"dt: expected a positive number, got {dt}")
        return h, t


def _check_state(state):
    if not isinstance(state, State):
        raise ValueError(f"state: expected one of the system, as jdyn.System.state gives it, got {short(state)}")
