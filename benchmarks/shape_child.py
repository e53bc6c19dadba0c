"""Two shapes in a process of its own, in which MJX looks for their contacts in a batch of poses.

    python -m benchmarks.shape_child

It reads a line of JSON with `xml`, a model of two geoms, and `rotations` and `places`, poses of the second one's body;
and answers with the least distance of any contact of each pose and the processor's seconds of the fastest of five
calls. It needs no jdyn.
"""

import json
import sys
import time

import numpy as np


def placed(mujoco, ask):
    """The model, its data, and poses of the second geom for all poses of its body.

    Meshes are moved to their centres of mass, which the frames of geoms follow.
    """
    model = mujoco.MjModel.from_xml_string(ask["xml"])
    data, turn = mujoco.MjData(model), np.zeros(9)
    mujoco.mj_forward(model, data)
    mujoco.mju_quat2Mat(turn, model.geom_quat[1])
    rotations, places = (np.asarray(ask[key], float) for key in ("rotations", "places"))
    return model, data, rotations @ turn.reshape(3, 3), rotations @ model.geom_pos[1] + places


def seconds(call):
    """Processor time of the fastest of five calls."""
    times = []
    for _ in range(5):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def by_mjx(ask):
    import jax
    import mujoco
    from mujoco import mjx

    host, data, rotations, places = placed(mujoco, ask)
    model, rest = mjx.put_model(host), mjx.make_data(host)
    turns, middles = data.geom_xmat.reshape(2, 3, 3), data.geom_xpos

    def distance(rotation, place):
        poses = {"geom_xmat": jax.numpy.asarray(turns).at[1].set(rotation)}
        poses["geom_xpos"] = jax.numpy.asarray(middles).at[1].set(place)
        return mjx.collision(model, rest.replace(**poses))._impl.contact.dist.min()

    program = jax.jit(jax.vmap(distance))
    found = np.asarray(program(rotations, places))
    taken = seconds(lambda: jax.block_until_ready(program(rotations, places)))
    return {"distance": found.tolist(), "cpu_s": taken}


def main():
    out, sys.stdout = sys.stdout, sys.stderr
    try:
        answer = by_mjx(json.loads(sys.stdin.readline()))
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
    print(json.dumps(answer), file=out)


if __name__ == "__main__":
    main()
