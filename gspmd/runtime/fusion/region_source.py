"""What the source texts of kernels that apply a region on scalars have in common: the region as a function, `combine`.

It takes what is held, a number of each of N arrays, and what comes next, and returns what is held then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gspmd.ir.graph import Region, Value
from gspmd.ops.folding import Steps
from gspmd.ops.rules import scalar_type
from gspmd.runtime.fusion.codegen import expression

_HEAD = '''"""A fold by a region, generated."""
from numba import cfunc, njit, types
from gspmd.runtime.fusion.scalars import *


'''
_KERNEL = "@cfunc(types.void(types.int64, types.int64, types.int64, types.int64, types.int64), {})".format(
    'cache=True, error_model="numpy"'
)


class RegionWriter:
    """Writes a kernel line by line; `count` arrays of some `dtypes`, whose elements have some `sizes` in bytes."""

    def __init__(self, steps: Steps, region: Region) -> None:
        self.steps, self.region = steps, region
        self.lines: list[str] = []
        self.depth = 0
        self.count = len(region.results)
        dtypes = [v.type.dtype for v in region.results]
        self.dtypes, self.sizes = [scalar_type(t) for t in dtypes], [t.itemsize for t in dtypes]

    def text(self) -> str:
        """All that was written."""
        return _HEAD + "\n".join(self.lines) + "\n"

    def kernel(self) -> None:
        """The line that begins the kernel."""
        self.lines.append("\n\n" + _KERNEL)
        self.block("def kernel(lo, hi, block, scratch, table):")

    def put(self, line: str) -> None:
        """A line."""
        self.lines.append("    " * self.depth + line)

    def each(self, text: Callable[[int], str]) -> str:
        """Something of every array, by its number."""
        return ", ".join(map(text, range(self.count)))

    def block(self, head: str, body: Sequence[str] = ()) -> None:
        """A line that opens a block; with a body the block is closed again."""
        self.put(head)
        self.depth += 1
        for line in body:
            self.put(line)
        self.depth -= 1 if body else 0

    def step(self) -> None:
        """The region as a function of what is held and what comes next."""
        names: dict[Value, str] = {p: f"p{k}" for k, p in enumerate(self.region.params)}
        self.put('@njit(error_model="numpy")')
        self.block(f"def combine({', '.join(names.values())}):")
        for node, form in self.steps:
            names[node.result] = f"w{len(names)}"
            self.put(f"{names[node.result]} = {expression(node, form, [names[v] for v in node.operands])}")
        self.put("return ({},)".format(", ".join(names[v] for v in self.region.results)))
        self.depth = 0

    def combined(self, held: Callable[[int], str], new: Callable[[int], str]) -> str:
        """The region applied to what is held and what comes next, by number of the array."""
        return f"combine({self.each(held)}, {self.each(new)})"

    def accumulate(self, held: str, new: Callable[[int], str]) -> str:
        """A line by which what is held takes in what comes next."""
        return f"{self.tuple(held)} = {self.combined(lambda i: f'{held}{i}', new)}"

    def tuple(self, name: str) -> str:
        """The numbered variables of a name."""
        return f"({self.each(lambda i: f'{name}{i}')},)"
