"""XLA's GSPMD as a peer: its own pass times and its whole compilation, for 8 devices of its CPU client.

    python -m benchmarks.xla --file PROGRAM.mlir      compiles a StableHLO text with `mhlo.sharding` annotations
    python -m benchmarks.xla --layers N               traces, lowers and compiles the model in JAX

XLA logs how long each of its passes took when told so by the environment; `run_xla` starts the process and reads both.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.transformer import Library, Sizes, arguments, training_step

DEVICES = {"data": 2, "model": 4}
PASSES = ("sharding-propagation", "spmd-partitioning")
_TIME = re.compile(r"HLO pass: ([\w-]+) time: [^(]*\((\d+) us\)")
_OP = re.compile(r'^\s*%\S+ = "?(?:stablehlo|chlo|mhlo)\.', re.MULTILINE)


def run_xla(given: Sequence[str]) -> dict[str, float]:
    """Seconds of XLA's passes and of what surrounds them, measured in a process of its own."""
    env = dict(
        os.environ,
        JAX_PLATFORMS="cpu",
        JAX_ENABLE_COMPILATION_CACHE="0",
        XLA_FLAGS=f"--xla_force_host_platform_device_count={DEVICES['data'] * DEVICES['model']}",
        TF_CPP_VMODULE="hlo_pass_pipeline=1",
        TF_CPP_MIN_LOG_LEVEL="0",
    )
    done = subprocess.run([sys.executable, "-m", "benchmarks.xla", *given], env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    spent = {name: int(us) / 1e6 for name, us in _TIME.findall(done.stderr) if name in PASSES}
    return found | {name: spent[name] for name in PASSES}


def compile_text(path: Path) -> dict[str, float]:
    """Compile a StableHLO text: the number of its ops, and XLA's seconds."""
    from tests.xla.child import compile_file

    start = perf_counter()
    compile_file(str(path), DEVICES["data"] * DEVICES["model"])
    return {"ops": len(_OP.findall(path.read_text())), "compile": perf_counter() - start}


def compile_model(layers: int) -> dict[str, float]:
    """Trace, lower and compile the model in JAX: the number of StableHLO ops, and the seconds of each step."""
    import jax
    import jax.numpy
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    jax.config.update("jax_use_shardy_partitioner", False)
    mesh = jax.make_mesh(tuple(DEVICES.values()), tuple(DEVICES), axis_types=(AxisType.Auto,) * len(DEVICES))

    def shard(x: Any, *entries: str | None) -> Any:
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec(*entries)))

    sizes = Sizes(layers=layers)
    dtypes = {"f32": "float32", "i32": "int32"}
    given = arguments(sizes, lambda shape, dtype: jax.ShapeDtypeStruct(shape, dtypes[dtype]))
    step = training_step(Library(jax.numpy, shard, jax.value_and_grad), sizes)
    start = perf_counter()
    traced = jax.jit(step).trace(*given)
    middle = perf_counter()
    lowered = traced.lower()
    end = perf_counter()
    ops = len(_OP.findall(lowered.as_text()))
    again = perf_counter()
    lowered.compile()
    return {"ops": ops, "tracing": middle - start, "lowering": end - middle, "compile": perf_counter() - again}


def main() -> None:
    """The child process: prints one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.xla", description=(__doc__ or "").split("\n\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--file", type=Path)
    what.add_argument("--layers", type=int)
    args = parser.parse_args()
    print(json.dumps(compile_text(args.file) if args.file else compile_model(args.layers)))


if __name__ == "__main__":
    main()
