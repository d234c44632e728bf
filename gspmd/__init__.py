"""gspmd: write a tensor program as for one device, annotate a few shardings, run it on many.

The system of the GSPMD paper (Xu et al. 2021) as a standalone compiler. Names are loaded when first used, so that the
command line starts fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gspmd.runtime.abort import install_abort_hook

if TYPE_CHECKING:
    from gspmd.array import Array, from_callback, from_shards
    from gspmd.driver.annotate import mesh_split, shard
    from gspmd.driver.compiled import Compiled, compile
    from gspmd.driver.functions import program
    from gspmd.driver.imports import from_jax, from_stablehlo
    from gspmd.driver.jit import jit
    from gspmd.driver.meshes import default_mesh
    from gspmd.driver.module import Module, trace
    from gspmd.driver.sources import load
    from gspmd.frontend.annotate import propagation_barrier, shard_as, shard_like
    from gspmd.frontend.config import enable_x64
    from gspmd.frontend.control import cond, fori_loop, scan, switch, while_loop
    from gspmd.frontend.custom import custom_op
    from gspmd.frontend.grad import grad, value_and_grad
    from gspmd.frontend.manual import (
        PartitionSpec,
        all_gather,
        all_reduce,
        all_to_all,
        axis_index,
        axis_size,
        collective_permute,
        reduce_scatter,
        shard_map,
    )
    from gspmd.frontend.nn import stop_gradient
    from gspmd.frontend.tree import tree_map
    from gspmd.inspect.cost import MachineModel
    from gspmd.inspect.graph import to_networkx
    from gspmd.ir.errors import GspmdError, LimitError
    from gspmd.ir.mesh import Mesh
    from gspmd.ir.sharding import Sharding
    from gspmd.ir.types import TensorType
    from gspmd.runtime.environment import world

_HOMES = {
    "gspmd.array": "Array from_callback from_shards",
    "gspmd.driver.annotate": "mesh_split shard",
    "gspmd.driver.compiled": "Compiled compile",
    "gspmd.driver.functions": "program",
    "gspmd.driver.imports": "from_jax from_stablehlo",
    "gspmd.driver.jit": "jit",
    "gspmd.driver.meshes": "default_mesh",
    "gspmd.driver.module": "Module trace",
    "gspmd.driver.sources": "load",
    "gspmd.frontend.annotate": "propagation_barrier shard_as shard_like",
    "gspmd.frontend.config": "enable_x64",
    "gspmd.frontend.control": "cond fori_loop scan switch while_loop",
    "gspmd.frontend.custom": "custom_op",
    "gspmd.frontend.grad": "grad value_and_grad",
    "gspmd.frontend.manual": (
        "PartitionSpec all_gather all_reduce all_to_all axis_index axis_size collective_permute reduce_scatter "
        "shard_map"
    ),
    "gspmd.frontend.nn": "stop_gradient",
    "gspmd.frontend.tree": "tree_map",
    "gspmd.inspect.cost": "MachineModel",
    "gspmd.inspect.graph": "to_networkx",
    "gspmd.ir.errors": "GspmdError LimitError",
    "gspmd.ir.mesh": "Mesh",
    "gspmd.ir.sharding": "Sharding",
    "gspmd.ir.types": "TensorType",
    "gspmd.runtime.environment": "world",
}
# Modules that are there without an import of their own, as `gspmd.numpy.sum`.
_MODULES = ("numpy", "random")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Array",
    "Compiled",
    "GspmdError",
    "LimitError",
    "MachineModel",
    "Mesh",
    "Module",
    "PartitionSpec",
    "Sharding",
    "TensorType",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "axis_index",
    "axis_size",
    "collective_permute",
    "compile",
    "cond",
    "custom_op",
    "default_mesh",
    "enable_x64",
    "fori_loop",
    "from_callback",
    "from_jax",
    "from_shards",
    "from_stablehlo",
    "grad",
    "jit",
    "load",
    "mesh_split",
    "program",
    "propagation_barrier",
    "reduce_scatter",
    "scan",
    "shard",
    "shard_as",
    "shard_like",
    "shard_map",
    "stop_gradient",
    "switch",
    "to_networkx",
    "trace",
    "tree_map",
    "value_and_grad",
    "while_loop",
    "world",
]

# A rank that fails before it needs MPI would leave the others waiting for it.
install_abort_hook()


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"gspmd.{name}")
    if name == "__version__":
        return import_module("importlib.metadata").version("gspmd")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'gspmd' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
