"""What JAX computes of a program on several devices, which a process of its own has: its CPU, counted often.

`python -m tests.interop.programs.devices PROGRAM/LAYOUT OUT` leaves the pickled results, a nesting of arrays.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

if TYPE_CHECKING:
    from tests.interop.programs.case import Layout, Program

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 300.0


def on_devices(name: str, devices: int) -> Any:
    """The results of the case of a name, by JAX on so many devices."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags, "TF_CPP_MIN_LOG_LEVEL": "3"}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "results")
        command = [sys.executable, "-m", "tests.interop.programs.devices", name, str(out)]
        done = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        if done.returncode:
            raise RuntimeError(f"JAX could not run {name}: {done.stderr}")
        return pickle.loads(out.read_bytes())


def run(program: Program, layout: Layout) -> Any:
    """The results on this process's own devices, with arguments and results where the layout has them."""
    mesh = jax.make_mesh(tuple(layout.mesh.values()), tuple(layout.mesh), axis_types=layout.jax_mesh.axis_types)

    def placed(x: Any, spec: Any) -> Any:
        return jax.device_put(x, jax.sharding.NamedSharding(mesh, jax.P() if spec is None else spec))

    arguments = layout.everywhere(placed, program.arguments)
    results = jax.jit(program.function(layout))(*arguments)
    assert all(len(x.sharding.device_set) == layout.devices for x in jax.tree.leaves(results))
    return jax.tree.map(np.asarray, results)


def main(name: str, out: str) -> None:
    """Run a case and leave its results."""
    from tests.interop.programs import CASES  # the programs of the cases import this module

    Path(out).write_bytes(pickle.dumps(run(*CASES[name])))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
