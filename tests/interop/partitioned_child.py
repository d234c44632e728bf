"""Run exported per-device programs with XLA, one CPU device a partition: `python partitioned_child.py JOBS ANSWERS`.

JOBS is a pickled list of `Job`s; what comes out of each is appended to ANSWERS as it is known, since XLA aborts on some
programs that it does not take.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib import lapack, xla_client  # type: ignore[attr-defined]


def run(text: str, partitions: int, arguments: list[list[Any]]) -> list[list[Any]]:
    """The results of each partition for its arguments; both are listed by value, then by partition."""
    devices = tuple(jax.devices()[:partitions])
    options = xla_client.CompileOptions()
    options.num_partitions = partitions
    build = options.executable_build_options
    build.num_partitions = partitions
    # The text is marked as manual: XLA's partitioner passes it through, and will not compile for partitions without.
    build.use_spmd_partitioning = partitions > 1
    build.device_assignment = xla_client.DeviceAssignment.create(np.arange(partitions).reshape(1, partitions))
    compiled = devices[0].client.compile_and_load(text.encode(), xla_client.DeviceList(devices), options)
    everywhere = NamedSharding(Mesh(np.array(devices), ("partition",)), PartitionSpec())
    given: list[Any] = []
    for shards in arguments:
        held = [jax.device_put(x, d) for x, d in zip(shards, devices, strict=True)]
        given.append(jax.make_array_from_single_device_arrays(shards[0].shape, everywhere, held))
    results = compiled.execute_sharded(given).disassemble_into_single_device_arrays()
    return [[np.asarray(x) for x in shards] for shards in results]


def main(jobs: str, answers: str) -> None:
    """Run all jobs; an answer is a list of results or a text that says what went wrong."""
    vars(lapack)["_lapack"].initialize()
    with Path(answers).open("ab", buffering=0) as out, jax.enable_x64(True):
        for text, partitions, arguments in pickle.loads(Path(jobs).read_bytes()):
            try:
                answer: Any = run(text, partitions, arguments)
            except Exception as error:  # noqa: BLE001  whatever it is, it is the answer
                answer = f"{type(error).__name__}: {error}"
            out.write(pickle.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
