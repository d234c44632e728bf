"""Compile many programs with XLA's CPU client in one process, each leaving its dumps in a folder of its own.

Run by `asking` as `python child.py FOLDER`: for every FOLDER/NAME.mlir, whose first line says `// devices: N`, dumps
go to FOLDER/NAME/; FOLDER/NAME.error says why XLA refused one. It begins with those that have no folder yet.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import numpy as np
from jaxlib import lapack, xla_client

PASSES = ".*(sharding-propagation|spmd-partitioning|shardy).*"


def compile_text(text: str, devices: int, dump: Path) -> None:
    """Compile one module, partitioned over that many devices."""
    options = xla_client.CompileOptions()
    options.num_partitions = devices
    build = options.executable_build_options
    build.num_partitions = devices
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = "sdy." in text
    build.device_assignment = xla_client.DeviceAssignment.create(np.arange(devices).reshape(1, devices))
    build.debug_options.xla_dump_to = str(dump)
    build.debug_options.xla_dump_hlo_as_text = True
    build.debug_options.xla_dump_hlo_pass_re = PASSES
    client = jax.devices()[0].client
    client.compile_and_load(text.encode(), xla_client.DeviceList(tuple(jax.devices()[:devices])), options)


def main(folder: Path) -> None:
    """Compile what was not compiled yet."""
    lapack._lapack.initialize()  # pyright: ignore[reportPrivateImportUsage]
    for file in sorted(folder.glob("*.mlir")):
        dump = file.with_suffix("")
        if dump.exists():
            continue
        dump.mkdir()
        head, _, text = file.read_text(encoding="utf-8").partition("\n")
        try:
            compile_text(text, int(head.rpartition(" ")[2]), dump)
        except Exception as error:  # noqa: BLE001 - whatever XLA says is the answer
            file.with_suffix(".error").write_text(str(error)[-400:], encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
