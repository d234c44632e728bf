"""gspmd: write a tensor program as for one device, annotate a few shardings, run it on many.

The system of the GSPMD paper (Xu et al. 2021) as a standalone compiler.
"""

from gspmd.array import Array, from_callback, from_numpy, from_shards
from gspmd.driver.annotate import mesh_split, shard
from gspmd.driver.compiled import Compiled, compile
from gspmd.driver.jit import jit
from gspmd.driver.meshes import default_mesh
from gspmd.driver.module import Module, trace
from gspmd.driver.sources import load, program
from gspmd.frontend.config import enable_x64
from gspmd.frontend.control import cond, fori_loop, scan, switch, while_loop
from gspmd.frontend.grad import grad, value_and_grad
from gspmd.frontend.nn import stop_gradient
from gspmd.ir.errors import GspmdError
from gspmd.ir.mesh import Mesh
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.runtime.environment import world

__all__ = [
    "Array",
    "Compiled",
    "GspmdError",
    "Mesh",
    "Module",
    "Sharding",
    "TensorType",
    "compile",
    "cond",
    "default_mesh",
    "enable_x64",
    "fori_loop",
    "from_callback",
    "from_numpy",
    "from_shards",
    "grad",
    "jit",
    "load",
    "mesh_split",
    "program",
    "scan",
    "shard",
    "stop_gradient",
    "switch",
    "trace",
    "value_and_grad",
    "while_loop",
    "world",
]
