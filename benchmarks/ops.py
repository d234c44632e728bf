"""Milliseconds of single ops that are no plain arithmetic: gspmd against XLA on one thread, on the same programs.

    python benchmarks/ops.py [NAME ...] [--repeat 7] [--json]

Each op is a JAX function, which XLA compiles and gspmd imports; its results are compared. Every op is a process of its
own, held to one core with all its threads; the two take turns, so that a busy machine is busy for both. Ratios of one
run can be compared, times of different runs cannot.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
# What may be left over from other experiments and changes how BLAS or threads behave.
_STRAY = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "XLA_FLAGS", "GSPMD_MESH")
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "GSPMD_THREADS")
_RNG = np.random.default_rng(0)

Case = tuple[Callable[..., Any], Sequence[Any]]


def _normal(*shape: int) -> Any:
    return _RNG.standard_normal(shape).astype(np.float32)


def _whole(high: int, *shape: int) -> Any:
    return _RNG.integers(0, high, shape).astype(np.int32)


def cases() -> dict[str, Callable[[], Case]]:
    """Every op by name, with its arguments."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def convolved(x: Any, w: Any, stride: int = 1) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=numbers)

    def gradient_of(number: int, stride: int = 1) -> Callable[..., Any]:
        def back(x: Any, w: Any, ct: Any) -> Any:
            return jax.vjp(lambda x, w: convolved(x, w, stride), x, w)[1](ct)[number]

        return back

    image, weights = (8, 56, 56, 64), (3, 3, 64, 64)
    pool = ((1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    dense = ((1, 3, 3, 1), (1, 1, 1, 1), "SAME")

    def pool_back(x: Any, ct: Any) -> Any:
        return jax.vjp(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, *pool), x)[1](ct)[0]

    def lexicographic(a: Any, b: Any, c: Any) -> Any:
        return lax.sort((a, b, c), dimension=0, num_keys=2)

    def smallest(x: Any, i: Any, top: Any) -> Any:
        def least(a: Any, b: Any) -> Any:
            left = (a[0] < b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
            return jnp.where(left, a[0], b[0]), jnp.where(left, a[1], b[1])

        return lax.reduce_window((x, i), (jnp.float32(jnp.inf), jnp.int32(top)), least, *pool)

    return {
        "convolution": lambda: (convolved, (_normal(*image), _normal(*weights))),
        "convolution, d input": lambda: (gradient_of(0), (_normal(*image), _normal(*weights), _normal(*image))),
        "convolution, d weights": lambda: (gradient_of(1), (_normal(*image), _normal(*weights), _normal(*image))),
        "convolution, stride 2": lambda: (lambda x, w: convolved(x, w, 2), (_normal(*image), _normal(*weights))),
        "depthwise convolution": lambda: (
            lambda x, w: lax.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=64
            ),
            (_normal(*image), _normal(3, 3, 1, 64)),
        ),
        "gather rows": lambda: (lambda t, i: jnp.take(t, i, axis=0), (_normal(50000, 256), _whole(50000, 16384))),
        "gather elements": lambda: (
            lambda x, i: jnp.take_along_axis(x, i, axis=1),
            (_normal(2048, 1024), _whole(1024, 2048, 1024)),
        ),
        "scatter-add rows": lambda: (
            lambda t, i, u: t.at[i].add(u),
            (_normal(50000, 256), _whole(50000, 16384), _normal(16384, 256)),
        ),
        "scatter-add elements": lambda: (
            lambda t, i, u: t.at[i].add(u),
            (_normal(100000), _whole(100000, 1 << 20), _normal(1 << 20)),
        ),
        "scatter by a region": lambda: (
            lambda t, i, u: t.at[i].apply(jnp.tanh) + t.at[i].max(u),
            (_normal(100000), _whole(100000, 1 << 18), _normal(1 << 18)),
        ),
        "embedding by one-hot": lambda: (
            lambda t, i: jax.nn.one_hot(i, 4096) @ t,
            (_normal(4096, 256), _whole(4096, 2048)),
        ),
        "sort rows": lambda: (lambda x: jnp.sort(x, axis=1), (_normal(1024, 2048),)),
        "sort columns": lambda: (lambda x: jnp.sort(x, axis=0), (_normal(2048, 1024),)),
        "argsort": lambda: (lambda x: jnp.argsort(x, axis=1), (_normal(1024, 2048),)),
        "sort by two keys": lambda: (lexicographic, (_whole(99, 1 << 19), _normal(1 << 19), _whole(9, 1 << 19))),
        "top_k": lambda: (lambda x: lax.top_k(x, 16), (_normal(1024, 4096),)),
        "max-pool 2x2": lambda: (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, *pool), (_normal(*image),)),
        "sum-pool 3x3": lambda: (lambda x: lax.reduce_window(x, 0.0, lax.add, *dense), (_normal(*image),)),
        "max-pool 2x2, gradient": lambda: (pool_back, (_normal(*image), _normal(8, 28, 28, 64))),
        "pool by a region": lambda: (
            lambda x, i: smallest(x, i, 1 << 30),
            (_normal(*image), _whole(1 << 20, *image)),
        ),
        "cumsum, last": lambda: (lambda x: jnp.cumsum(x, axis=1), (_normal(2048, 2048),)),
        "cumsum, first": lambda: (lambda x: jnp.cumsum(x, axis=0), (_normal(2048, 2048),)),
        "fft": lambda: (
            lambda x: jnp.fft.fft(x),
            ((_normal(512, 4096) + 1j * _normal(512, 4096)).astype(np.complex64),),
        ),
        "rfft": lambda: (lambda x: jnp.fft.rfft(x), (_normal(512, 8192),)),
        "argmax, last": lambda: (lambda x: jnp.argmax(x, axis=1), (_normal(2048, 2048),)),
        "argmax, first": lambda: (lambda x: jnp.argmax(x, axis=0), (_normal(2048, 2048),)),
        "argmax of all": lambda: (lambda x: jnp.argmax(x), (_normal(1 << 22),)),
    }


def measure(name: str, repeat: int) -> dict[str, float]:
    """The least milliseconds of both on one case; raises AssertionError if their results differ."""
    import jax

    sys.path.insert(0, str(ROOT))
    import gspmd

    jax.config.update("jax_platforms", "cpu")
    function, arguments = cases()[name]()
    theirs = jax.jit(function)
    given = [jax.numpy.asarray(x) for x in arguments]
    ours = gspmd.compile(gspmd.from_jax(function, *arguments), devices=1)

    def run_theirs() -> Any:
        return jax.block_until_ready(theirs(*given))

    def run_ours() -> Any:
        return ours(*arguments)

    for x, y in zip(jax.tree.leaves(run_theirs()), jax.tree.leaves(run_ours()), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-3, atol=1e-2)
    least = {"xla": float("inf"), "gspmd": float("inf")}
    for _ in range(repeat):
        for label, run in (("xla", run_theirs), ("gspmd", run_ours)):
            start = time.perf_counter()
            run()
            least[label] = min(least[label], (time.perf_counter() - start) * 1e3)
    return least


def child(name: str, repeat: int) -> dict[str, Any]:
    """One case in a process of its own."""
    env = {k: v for k, v in os.environ.items() if k not in _STRAY} | dict.fromkeys(_THREADS, "1")
    command = ["taskset", "-c", "0", sys.executable, __file__, "--child", name, "--repeat", str(repeat)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=ROOT)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1]}
    return json.loads(lines[0])


def main() -> int:
    """Print one line a case; returns 1 if one could not be measured."""
    parser = argparse.ArgumentParser(description="Single ops beside XLA on one thread.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child")
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.child, options.repeat)), flush=True)
        return 0
    failed = False
    for name in options.names or cases():
        found = child(name, options.repeat)
        failed |= "error" in found
        if options.json:
            print(json.dumps({"op": name, **found}), flush=True)
        elif "error" in found:
            print(f"{name:26}{found['error']}", flush=True)
        else:
            ratio = found["gspmd"] / found["xla"]
            print(f"{name:26}{found['gspmd']:9.2f} ms{found['xla']:9.2f} ms XLA{ratio:7.2f}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
