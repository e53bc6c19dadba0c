"""How many programs ordinary calls compile: a process has memory maps for some hundreds of them."""

import json
import os
import subprocess
import sys

CALLS = """
import json
import jax, jax.numpy as jnp
import jdyn

compiled = [0]

def listen(event, seconds, **details):
    compiled[0] += event == "/jax/core/compile/backend_compile_duration"

jax.monitoring.register_event_duration_secs_listener(listen)
found = {}

def counted(name, call):
    before = compiled[0]
    result = call()
    found[name] = compiled[0] - before
    return result

key = jax.random.key(0)
model = counted("load", lambda: jdyn.load("panda"))
counted("load again", lambda: jdyn.load("panda"))
q = counted("random", lambda: model.random(key))
x = jnp.zeros(model.nv)
counted("forward dynamics", lambda: jdyn.forward_dynamics(model, q, x, x))
counted("Jacobian", lambda: jdyn.jacobian(model, q, 0))
counted("Jacobians of other bodies", lambda: [jdyn.jacobian(model, q, name) for name in model.body_names[1:]])
counted("forward dynamics of another mass", lambda: jdyn.forward_dynamics(model.with_body("link7", mass=2.0), q, x, x))
print(json.dumps(found))
"""


def test_ordinary_calls_compile_few_programs():
    # They are counted alone, so they may be compiled in less time than a user's.
    environment = {"JAX_ENABLE_COMPILATION_CACHE": "false", "XLA_FLAGS": "--xla_backend_optimization_level=0"}
    done = subprocess.run([sys.executable, "-c", CALLS], env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["load"] <= 2 and found["random"] <= 2 and found["forward dynamics"] == 1, found
    assert found["load again"] == 0 and found["forward dynamics of another mass"] <= 4, found
    # One program serves all bodies and frames.
    assert found["Jacobian"] == 1 and found["Jacobians of other bodies"] == 0, found
