"""Compile one program with XLA's CPU client for a number of devices, and leave its dumps behind.

Run by the oracle as a process of its own: `python child.py FILE DEVICES`. XLA aborts on a program that it refuses.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import numpy as np
from jaxlib import _hlo, _jax, xla_client  # type: ignore[attr-defined]


def compile_file(path: str, devices: int) -> None:
    """Compile the HLO text or StableHLO text of a file, partitioned over that many devices."""
    text = Path(path).read_text()
    program = text.encode()
    if "HloModule" in text:
        module = _hlo.hlo_module_from_text(text)
        program = _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
    options = xla_client.CompileOptions()
    options.num_partitions = devices
    build = options.executable_build_options
    build.num_partitions = devices
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = "sdy." in text
    build.device_assignment = xla_client.DeviceAssignment.create(np.arange(devices).reshape(1, devices))
    client = jax.devices()[0].client
    client.compile_and_load(program, xla_client.DeviceList(tuple(jax.devices()[:devices])), options)


if __name__ == "__main__":
    compile_file(sys.argv[1], int(sys.argv[2]))
