"""Functions of JAX in PyTorch: values, derivatives of all kinds, types, and what is refused."""

import doctest
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
import jdyn.guide.interop

torch = pytest.importorskip("torch")

from jdyn.interop import to_torch  # noqa: E402

# Forward mode of torch compiles decompositions of its own, once.
pytestmark = [
    pytest.mark.fast_compile,
    pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning"),
]

ARM = jdyn.load("double_pendulum")
STATE = np.array([[0.3, -0.5], [1.0, 2.0], [0.7, -0.2]])


def tensors(*arrays, requires_grad=True):
    return [torch.tensor(x, dtype=torch.float64, requires_grad=requires_grad) for x in arrays]


def product(x, y):
    """y sin x, whose derivatives are known."""
    return y * jnp.sin(x)


PRODUCT = to_torch(product)


def test_gradients_of_forward_dynamics_are_those_of_jdyn():
    def squared(model, q, v, tau):
        return jnp.sum(jdyn.forward_dynamics(model, q, v, tau) ** 2)

    values = tensors(*STATE)
    a = to_torch(jdyn.forward_dynamics)(ARM, *values)
    (a**2).sum().backward()
    expected = jax.jit(jax.grad(squared, argnums=(1, 2, 3)))(ARM, *STATE)
    for value, slope in zip(values, expected, strict=True):
        np.testing.assert_allclose(value.grad.numpy(), slope, rtol=1e-12, atol=1e-12)


def test_forward_dynamics_passes_the_checks_of_torch():
    """By finite differences: reverse and forward mode, and second derivatives."""
    function = to_torch(lambda q, v, tau: jdyn.forward_dynamics(ARM, q, v, tau))
    values = tuple(tensors(*STATE))
    assert torch.autograd.gradcheck(function, values, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, values)


@pytest.mark.slow
def test_gradients_of_a_simulation_are_those_of_jdyn(ordinary_promotion):
    def end(q, v, damping):
        return jdyn.simulate(ARM.with_joint("joint1", damping=damping), q, v, 0.5, throw=False).q[-1]

    values = tensors(*STATE[:2], 0.3)
    (to_torch(end)(*values) ** 2).sum().backward()
    expected = jax.jit(jax.grad(lambda *args: jnp.sum(end(*args) ** 2), argnums=(0, 1, 2)))(*STATE[:2], 0.3)
    for value, slope in zip(values, expected, strict=True):
        np.testing.assert_allclose(value.grad.numpy(), slope, rtol=1e-12, atol=1e-12)


def test_an_optimizer_of_torch_reduces_a_loss():
    """The torque that holds the arm still, from none; the loss is quadratic, and its minimum known."""
    q = tensors(STATE[0], requires_grad=False)[0]
    accelerations = to_torch(lambda q, tau: jdyn.forward_dynamics(ARM, q, jnp.zeros(2), tau))
    tau = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    optimizer, losses = torch.optim.LBFGS([tau], line_search_fn="strong_wolfe"), []

    def loss():
        optimizer.zero_grad()
        losses.append((accelerations(q, tau) ** 2).sum())
        losses[-1].backward()
        return losses[-1]

    optimizer.step(loss)
    assert losses[-1] < 1e-6 * losses[0]
    np.testing.assert_allclose(tau.detach(), jdyn.gravity_forces(ARM, STATE[0]), atol=1e-3)


def test_a_policy_of_torch_learns_through_an_environment():
    """Episodes are PyTrees of tensors, keys among them."""
    environment = jdyn.environments.Environment(
        jdyn.System(jdyn.load("pendulum")),
        dt=0.05,
        observe=lambda state, sensors: jnp.concatenate([state.q, state.v]),
        reward=lambda before, action, after, sensors: -jnp.sum((after.q - 1) ** 2) - 1e-3 * jnp.sum(action**2),
    )
    first, step = environment.reset(jax.random.PRNGKey(0)), to_torch(environment.step)
    torch.manual_seed(0)
    policy = torch.nn.Linear(2, 1, dtype=torch.float64)
    optimizer, earned = torch.optim.Adam(policy.parameters(), lr=0.3), []
    for _ in range(6):
        now, rewards = first, 0
        observation = torch.tensor(np.array(first.observation))
        for _ in range(10):
            now = step(now, policy(observation))
            observation, rewards = now.observation, rewards + now.reward
        optimizer.zero_grad()
        (-rewards).backward()
        optimizer.step()
        earned.append(rewards.item())
    assert now.key.dtype == torch.uint32 and earned[-1] > earned[0] + 1


def test_transforms_of_torch_are_those_of_jax():
    x, y = tensors([0.3, 0.4], [2.0, 3.0], requires_grad=False)
    sine, cosine = torch.sin(x), torch.cos(x)
    close = functools.partial(torch.testing.assert_close, rtol=1e-14, atol=1e-14)
    for jacobian in (torch.func.jacrev, torch.func.jacfwd):
        close(jacobian(PRODUCT)(x, y), torch.diag(y * cosine))
    close(torch.func.hessian(lambda x: PRODUCT(x, y).sum())(x), torch.diag(-y * sine))
    close(torch.func.jvp(PRODUCT, (x, y), (torch.ones_like(x), y))[1], y * cosine + y * sine)
    close(
        torch.func.vmap(PRODUCT, in_dims=(1, None), out_dims=1)(torch.stack([x, y], 1), y),
        y[:, None] * torch.sin(torch.stack([x, y], 1)),
    )
    each = torch.func.vmap(torch.func.grad(PRODUCT, argnums=1))(x, y)
    close(each, sine)


def test_types_are_those_of_the_tensors():
    arguments = {"q": torch.tensor([0.5, 1.5], requires_grad=True), "which": torch.tensor([1, 0])}

    @to_torch
    def chosen(given, *, factor, power):
        values = given["q"][given["which"]]
        return {"values": factor * values**power, "largest": jnp.argmax(values), "positive": values > 1}

    found = chosen(arguments, factor=2.0, power=2)
    assert found["values"].dtype == torch.float32 and found["largest"].item() == 0
    assert found["positive"].tolist() == [True, False]
    assert not found["largest"].requires_grad and not found["positive"].requires_grad
    found["values"].sum().backward()
    assert arguments["q"].grad.tolist() == [2.0, 6.0] and arguments["q"].grad.dtype == torch.float32
    with torch.no_grad():
        assert not chosen(arguments, factor=2.0, power=2)["values"].requires_grad


def test_a_program_serves_all_values():
    traced = []

    @to_torch
    def product(model, x, factor, name):
        traced.append(name)
        return factor * x * jnp.sum(model.inertias.mass)

    (x,) = tensors([1.0, 2.0], requires_grad=False)
    heavy = ARM.with_body("link1", mass=3.0)
    assert product(ARM, x, 1.0, "a").tolist() == [2.0, 4.0]
    assert product(heavy, x, 0.5, "a").tolist() == [2.0, 4.0]
    assert traced == ["a"]
    # What is equal in Python alone is another program.
    power = to_torch(lambda x, n: x if n is True else x**2)
    assert power(x, True).tolist() == [1.0, 2.0] and power(x, 1).tolist() == [1.0, 4.0]


def test_memory_is_shared_where_nothing_can_change_it():
    """Tensors in any layout give the same; a result is nobody else's memory."""
    whole = torch.arange(12, dtype=torch.float64)
    grid = whole.reshape(3, 4)
    both = to_torch(lambda x: (x, 2 * x, 2 * x))
    for x in (whole, whole[1:], whole[::2], grid.T, grid[:, 1:3], torch.ones(()).double().expand(3), whole[:0]):
        kept = x.clone()
        results = both(x)
        for result, expected in zip(results, (kept, 2 * kept, 2 * kept), strict=True):
            assert torch.equal(result, expected)
            result += 1
        assert torch.equal(x, kept)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda x: (x, torch.ones(2, dtype=torch.complex64)), "argument 1: .* got torch.complex64"),
        (lambda x: ({"q": [x, {1}]}, x), r"argument 0\['q'\]\[1\]: expected tensors, .* got set"),
        (lambda x: (x, torch.ones(2, device="meta")), "argument 1: .* got tensors on cpu and on meta"),
        (lambda x: (torch.ones(2, device="meta"), 1.0), "argument 0: .* got one on meta, where JAX does not run"),
        (lambda x: (x.to_sparse(), 1.0), "argument 0: .* layout torch.sparse_coo"),
    ],
)
def test_what_cannot_be_taken_is_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        PRODUCT(*arguments(torch.ones(2, dtype=torch.float64)))


def test_what_is_refused_beside_arguments():
    (x,) = tensors([1.0, 2.0])
    with pytest.raises(ValueError, match="function: expected a function, got int"):
        to_torch(1)
    with pytest.raises(ValueError, match="function: expected arrays of numbers as its result, got key"):
        to_torch(lambda x: jax.random.key(0))(x)
    with pytest.raises(RuntimeError, match="is_grads_batched=True"):
        torch.autograd.grad(PRODUCT(x, x), x, torch.eye(2, dtype=torch.float64), is_grads_batched=True)
    with jax.enable_x64(False), pytest.raises(ValueError, match=r"argument 0: .* got torch.float64, .*jax_enable_x64"):
        PRODUCT(x, 1.0)


def test_the_example_does_what_it_says(ordinary_promotion):
    names = {"jdyn": jdyn, "__name__": "__main__"}
    example = doctest.DocTestParser().get_doctest(to_torch.__doc__, names, "to_torch", None, 0)
    assert example.examples and doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.slow
def test_the_program_of_the_guide_finds_the_torque(ordinary_promotion):
    (code,) = re.findall(r"^```python\n(.*?)^```$", str(jdyn.guide.interop.__doc__), re.MULTILINE | re.DOTALL)
    names = {"jdyn": jdyn, "jnp": jnp}
    exec(compile(code, "interop.py", "exec"), names)
    assert names["loss"](names["torque"]) < 1e-2
