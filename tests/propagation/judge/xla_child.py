"""Compile the StableHLO programs of a folder with XLA's CPU client, for the dumps that its propagation leaves behind.

Run as a process of its own: `python xla_child.py FOLDER DEVICES...`; it prints the name of each program before it
compiles it, so that whoever waits knows at which one XLA aborted.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import numpy as np
from jaxlib import xla_client

_OPTIONS = [("xla_backend_optimization_level", 0), ("xla_cpu_use_fusion_emitters", False)]


def compile_file(path: Path, devices: int) -> None:
    """Compile a program, its arguments' and results' shardings left to propagation where they are not given."""
    text = path.read_text(encoding="utf-8")
    options = xla_client.CompileOptions()
    options.env_option_overrides = _OPTIONS
    options.num_partitions = devices
    build = options.executable_build_options
    build.num_partitions = devices
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = False
    build.allow_spmd_sharding_propagation_to_parameters = [True]
    build.allow_spmd_sharding_propagation_to_output = [True]
    build.device_assignment = xla_client.DeviceAssignment.create(np.arange(devices).reshape(1, devices))
    client = jax.devices()[0].client
    client.compile_and_load(text.encode(), xla_client.DeviceList(tuple(jax.devices()[:devices])), options)


if __name__ == "__main__":
    for entry in sys.argv[2:]:
        name, _, count = entry.partition("=")
        print(name, flush=True)
        try:
            compile_file(Path(sys.argv[1], name), int(count))
        except Exception as error:  # noqa: BLE001 - the answer of a judge that refuses
            print(f"! {str(error)[:300]!r}", flush=True)
