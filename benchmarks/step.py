"""Seconds of one training step: gspmd against plain NumPy and JAX, and two ranks against one rank of one thread.

    python benchmarks/step.py [mlp|transformer] [--batch 256] [--repeat 5] [--no-jax] [--json]

Every measurement is a process of its own with a clean environment; they take turns, so that a busy machine is busy for
all of them. Ratios of one run can be compared, times of different runs cannot.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]
DEFAULTS = {
    "mlp": {"batch": 256, "width": 1024, "hidden": 4096, "layers": 3},
    "transformer": {"batch": 4, "width": 512, "hidden": 2048, "layers": 4},
}
# What may be left over from other experiments and changes how BLAS or threads behave.
_STRAY = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "XLA_FLAGS", "GSPMD_MESH", "GSPMD_THREADS")
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def child(name: str, mode: str, sizes: dict[str, int], repeat: int, ranks: int, threads: int) -> dict[str, Any]:
    """Run one measurement in a process of its own and return what it prints."""
    env = {k: v for k, v in os.environ.items() if k not in (*_STRAY, *_THREADS)}
    env |= dict.fromkeys(_THREADS, str(threads)) | {"GSPMD_THREADS": str(threads), "BENCH_MODE": mode}
    here = [sys.executable, __file__, name, "--child", mode, "--repeat", str(repeat)]
    here += [x for k, v in sizes.items() for x in (f"--{k}", str(v))]
    if ranks > 1:
        here = [str(Path(sys.executable).with_name("mpiexec")), "-n", str(ranks), *here]
    if mode == "jax" and threads == 1:
        here = ["taskset", "-c", "0", *here]
    done = subprocess.run(here, env=env, capture_output=True, text=True, cwd=ROOT)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1]}
    return json.loads(lines[0])


def measured(step: Any, repeat: int) -> dict[str, Any]:
    """The first call, and the least and the median of the others."""
    start = time.perf_counter()
    loss = step()
    first = time.perf_counter() - start
    times: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        loss = step()
        times.append(time.perf_counter() - start)
    times.sort()
    return {"first": first, "best": times[0], "median": times[len(times) // 2], "loss": float(loss)}


def run_numpy(name: str, sizes: Any, repeat: int) -> dict[str, Any]:
    import models

    state, data = models.STATES[name](sizes)
    held = [state]

    def step() -> Any:
        loss, held[0] = models.BY_HAND[name](held[0], *data, sizes)
        return loss

    return measured(step, repeat)


def run_jax(name: str, sizes: Any, repeat: int) -> dict[str, Any]:
    import jax
    import jax.numpy as jnp
    import models

    jax.config.update("jax_platforms", "cpu")
    state, data = models.STATES[name](sizes)

    def train(params: Any, *batch: Any) -> Any:
        loss, grads = jax.value_and_grad(lambda p: models.LOSSES[name](jnp, jax.nn, p, *batch, sizes))(params)
        return loss, jax.tree.map(lambda p, g: p - models.RATE * g, params, grads)

    compiled = jax.jit(train)
    held = [jax.tree.map(jnp.asarray, state)]

    def step() -> Any:
        loss, held[0] = compiled(held[0], *data)
        return jax.block_until_ready((loss, held[0]))[0]

    return measured(step, repeat)


def run_gspmd(name: str, sizes: Any, repeat: int, layout: str) -> dict[str, Any]:
    import models
    import numpy as np

    import gspmd
    import gspmd.numpy as gnp

    mesh = {"one": None, "data": gspmd.Mesh({"data": 2}), "tensor": gspmd.Mesh({"model": 2})}[layout]
    state, data = models.STATES[name](sizes)

    def place(params: Any) -> Any:
        return params if mesh is None else models_sharded(gspmd, name, mesh, layout, params)

    def train(params: Any, *batch: Any) -> Any:
        params = place(params)
        if layout == "data":
            batch = tuple(gspmd.shard(x, mesh, "data", *[None] * (x.ndim - 1)) for x in batch)
        loss, grads = gspmd.value_and_grad(lambda p: models.LOSSES[name](gnp, gnp, p, *batch, sizes))(params)
        return loss, place(_mapped(lambda p, g: p - models.RATE * g, params, grads))

    compiled: Any = gspmd.jit(mesh=mesh)(train)
    start = time.perf_counter()
    compiled.compiled_for(state, *data)
    passes = time.perf_counter() - start
    held = [state]

    def step() -> Any:
        loss, held[0] = compiled(held[0], *data)
        return loss

    found = measured(lambda: np.asarray(step()), repeat)
    return found | {"passes": passes}


def _mapped(f: Any, a: Any, b: Any) -> Any:
    return type(a)(_mapped(f, x, y) for x, y in zip(a, b, strict=True)) if isinstance(a, list | tuple) else f(a, b)


def models_sharded(gspmd: Any, name: str, mesh: Any, layout: str, params: Any) -> Any:
    """The parameters with their shardings: whole for data parallelism, columns then rows for tensor parallelism."""

    def put(x: Any, *dims: Any) -> Any:
        return gspmd.shard(x, mesh, *dims)

    def whole(x: Any) -> Any:
        return type(x)(map(whole, x)) if isinstance(x, list | tuple) else put(x, *[None] * x.ndim)

    if layout == "data":
        return whole(params)
    m = "model"
    if name == "mlp":
        (w1, b1), (w2, b2), (w3, b3) = params
        return [(put(w1, None, m), put(b1, m)), (put(w2, m, None), put(b2, None)), (put(w3, None, m), put(b3, m))]
    table, layers, scale, offset, unembed = params
    split = [
        (
            *map(whole, (g1, o1)), *(put(w, None, m, None) for w in (wq, wk, wv)), put(wo, m, None, None),
            *map(whole, (g2, o2)), put(w1, None, m), put(b1, m), put(w2, m, None), whole(b2),
        )
        for g1, o1, wq, wk, wv, wo, g2, o2, w1, b1, w2, b2 in layers
    ]  # fmt: skip
    return [put(table, None, m), split, whole(scale), whole(offset), put(unembed, None, m)]


def run_child(name: str, mode: str, sizes: Any, repeat: int) -> None:
    if mode == "numpy":
        result = run_numpy(name, sizes, repeat)
    elif mode == "jax":
        result = run_jax(name, sizes, repeat)
    else:
        result = run_gspmd(name, sizes, repeat, mode)
    if int(os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0"))) == 0:
        print(json.dumps(result), flush=True)


def report(name: str, sizes: dict[str, int], options: argparse.Namespace) -> None:
    cores = len(os.sched_getaffinity(0))
    runs = [("numpy", "numpy", 1, cores), ("gspmd", "one", 1, cores), ("jax", "jax", 1, cores)]
    runs += [("gspmd, 1 thread", "one", 1, 1), ("gspmd, 2 ranks data", "data", 2, max(1, cores // 2))]
    runs += [("gspmd, 2 ranks tensor", "tensor", 2, max(1, cores // 2))]
    found: dict[str, dict[str, Any]] = {}
    for label, mode, ranks, threads in runs:
        if (options.only and mode not in options.only.split(",")) or (mode == "jax" and options.no_jax):
            continue
        found[label] = child(name, mode, sizes, options.repeat, ranks, threads)
        shown = {k: round(v, 4) if isinstance(v, float) else v for k, v in found[label].items()}
        print(f"{name:12} {label:24} {shown}", flush=True)
    ratios = {
        "gspmd / numpy": ("gspmd", "numpy"),
        "gspmd / jax": ("gspmd", "jax"),
        "1 thread / 2 ranks data": ("gspmd, 1 thread", "gspmd, 2 ranks data"),
        "1 thread / 2 ranks tensor": ("gspmd, 1 thread", "gspmd, 2 ranks tensor"),
    }
    for label, (a, b) in ratios.items():
        if "best" in found.get(a, {}) and "best" in found.get(b, {}):
            print(f"{name:12} {label:26} {found[a]['median'] / found[b]['median']:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("model", nargs="?", choices=("mlp", "transformer"))
    for field in ("batch", "sequence", "width", "hidden", "layers", "heads", "vocabulary"):
        parser.add_argument(f"--{field}", type=int)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--no-jax", action="store_true")
    parser.add_argument("--only", default="", help="modes to run: numpy, one, jax, data, tensor, with commas")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    import models

    for name in [options.model] if options.model else ["mlp", "transformer"]:
        given = {f: v for f in models.Sizes._fields if (v := getattr(options, f)) is not None}
        sizes = DEFAULTS[name] | given
        if options.child:
            run_child(name, options.child, models.Sizes(**sizes), options.repeat)
        else:
            report(name, sizes, options)


if __name__ == "__main__":
    main()
