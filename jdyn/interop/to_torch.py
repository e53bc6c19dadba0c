"""JAX functions as those of PyTorch, which need not be installed."""

from collections.abc import Callable
from typing import Any


def to_torch(function: Callable[..., Any]) -> Callable[..., Any]:
    """A JAX function as one of torch tensors, with derivatives for `loss.backward()`.

    Tensors may stand anywhere in the PyTrees of the arguments, and all arrays of the result become tensors. They share
    memory with JAX by DLPack: only tensors that are not contiguous or not aligned are copied. The function is compiled
    once for each structure and shape of its arguments.

    >>> import torch
    >>> arm = jdyn.load("double_pendulum")
    >>> accelerations = jdyn.interop.to_torch(jdyn.forward_dynamics)
    >>> q, v, tau = torch.tensor([0.3, 0.1]), torch.zeros(2), torch.zeros(2, requires_grad=True)
    >>> accelerations(arm, q, v, tau).sum().backward()
    >>> print(tau.grad.numpy().round(2))
    [-2.53  9.3 ]

    - **Types** are those of the tensors: float64 and int64 are refused unless `jax_enable_x64` is set, complex numbers
      always. Derivatives are those of floating-point tensors.
    - **Other arguments**: arrays of JAX and NumPy, as in a model, and floating-point numbers may change between calls,
      but have no derivatives here. Everything else, such as whole numbers and strings, is part of the program, and has
      to be hashable.
    - **Derivatives** of any order are those of JAX: `backward` calls `jax.vjp`, forward mode `jax.jvp`, and
      `torch.func.vmap` is `jax.vmap`. `backward` computes the function again instead of keeping what it needs of it.
      The older batches of PyTorch, `is_grads_batched=True` and `vectorize=True`, are refused; take `torch.func.jacrev`.
      `torch.compile` leaves the function to JAX if it is given as `torch.compiler.disable(function)`.
    - **Devices**: all tensors of a call have to be on one device, on which JAX runs, too.

    Args:
        function: A pure function of PyTrees whose results are arrays of numbers, as for `jax.jit`.

    Returns:
        A function of the same arguments. It raises a ValueError for what it cannot take, with the name of the argument.

    Raises:
        ValueError: if `function` is something else.
        ImportError: without PyTorch, `pip install "jdyn[torch]"`.
    """
    if not callable(function):
        raise ValueError(f"function: expected a function, got {type(function).__name__}")
    try:
        from jdyn.interop.torch_function import of_tensors
    except ImportError as error:
        raise ImportError('PyTorch is not installed; pip install "jdyn[torch]"') from error
    return of_tensors(function)
