"""Run StableHLO text with XLA on one CPU device: what a program means, without partitioning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def run_text(text: str, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """The results of a module for its arguments; XLA's shardings are ignored, as there is one device."""
    import jax
    from jaxlib import lapack, xla_client

    vars(lapack)["_lapack"].initialize()  # XLA calls what has no address before
    device = jax.devices("cpu")[0]
    options = xla_client.CompileOptions()
    compiled = device.client.compile_and_load(text.encode(), xla_client.DeviceList((device,)), options)
    with jax.enable_x64(True):
        outputs = compiled.execute_sharded([jax.device_put(x, device) for x in arrays])
        return [np.asarray(shards[0]) for shards in outputs.disassemble_into_single_device_arrays()]
