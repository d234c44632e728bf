"""Train a small network to read handwritten digits, with data and model parallelism.

    python examples/digits.py                                                   # one device
    gspmd run examples/digits.py --ranks 4 --mesh data=2,model=2 --check        # four, compared with one
    mpiexec -n 4 python examples/digits.py                                      # four, as any MPI program

The code is that of one device but for two annotations: images are split over the mesh axis `data`, hidden units over
`model`. The compiler splits all the rest: weights, gradients, momentum. Each rank reads its own rows only, and the
weights stay on their ranks from step to step.
"""

import numpy as np
from sklearn.datasets import load_digits

import gspmd
import gspmd.numpy as gnp

HIDDEN, BATCH, STEPS, HELD_OUT = 100, 250, 200, 297  # nothing needs to divide by the number of devices
RATE, MOMENTUM = 0.3, 0.9

mesh = gspmd.default_mesh(data=-1, model=1)


def scores(params, images):
    images = gspmd.shard(images, mesh, "data", None)
    hidden = gspmd.shard(gnp.tanh(images @ params["w1"] + params["b1"]), mesh, "data", "model")
    return hidden @ params["w2"] + params["b2"]


def loss(params, images, labels):
    chosen = gnp.one_hot(labels, 10) * gnp.log_softmax(scores(params, images))
    return -gnp.sum(chosen) / len(labels)


@gspmd.jit
def step(params, momentum, images, labels):
    value, slopes = gspmd.value_and_grad(loss)(params, images, labels)
    momentum = {name: MOMENTUM * momentum[name] + slope for name, slope in slopes.items()}
    params = {name: w - RATE * momentum[name] for name, w in params.items()}
    return params, momentum, value


@gspmd.jit
def accuracy(params, images, labels):
    return gnp.mean(gnp.argmax(scores(params, images), axis=1) == labels)


def initial(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "w1": rng.normal(0, 1 / 8, (64, HIDDEN)).astype(np.float32),
        "b1": np.zeros(HIDDEN, np.float32),
        "w2": rng.normal(0, 1 / 10, (HIDDEN, 10)).astype(np.float32),
        "b2": np.zeros(10, np.float32),
    }


def batch(array, rows):
    """These rows of an array; each rank reads its own only."""
    type_ = gspmd.TensorType(array.dtype, (len(rows), *array.shape[1:]))
    sharding = gspmd.Sharding.of(mesh, "data", *[None] * (array.ndim - 1))
    return gspmd.from_callback(type_, sharding, lambda index: array[rows[index[0]]])


def main():
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(images))
    images, labels = (images[order] / 16).astype(np.float32), labels[order].astype(np.int32)

    def say(text):
        if gspmd.world().rank == 0:
            print(text, flush=True)

    say(f"mesh {mesh.text()}")
    params = initial()
    momentum = {name: np.zeros_like(w) for name, w in params.items()}
    rng = np.random.default_rng(2)
    for i in range(STEPS):
        rows = HELD_OUT + rng.choice(len(images) - HELD_OUT, BATCH, replace=False)
        params, momentum, value = step(params, momentum, batch(images, rows), batch(labels, rows))
        if i % 25 == 0 or i == STEPS - 1:
            say(f"step {i:3}  loss {float(value):.6f}")
    say(f"held-out accuracy {float(accuracy(params, images[:HELD_OUT], labels[:HELD_OUT])):.4f}")


if __name__ == "__main__":
    main()
