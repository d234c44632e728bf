"""What ops with a window share: checks of its fields, the number of its positions, and the access that it is."""

from __future__ import annotations

from collections.abc import Sequence

from gspmd.ir.attrs import Window, WindowDim
from gspmd.ir.dtypes import DType
from gspmd.ir.rule import Access, DimMap
from gspmd.kernels.window import around, padded_size, window_count
from gspmd.ops.rules import require

# The kinds of dtypes, as letters, that each monoid combines.
KINDS = {"add": "biufc", "mul": "biufc", "max": "biuf", "min": "biuf", "and": "biu", "or": "biu", "xor": "biu"}


def counts(op: str, window: Window, shape: Sequence[int], rank: int) -> list[int]:
    """How often a window fits into each dimension of a shape; W1 to W5 say what its fields must be."""
    require(len(window) == rank, f"{op}.W1", f"a window of {len(window)} dimensions moves over {rank}")
    for i, side in enumerate(window):
        require(side.size > 0, f"{op}.W2", f"the size of window dimension {i} must be positive, got {side.size}")
        require(side.stride > 0, f"{op}.W3", f"the stride of window dimension {i} must be positive, got {side.stride}")
        dilations = (side.base_dilation, side.window_dilation)
        require(min(dilations) > 0, f"{op}.W4", f"dilations of window dimension {i} must be positive, got {dilations}")
    for i, (n, side) in enumerate(zip(shape, window, strict=True)):
        require(
            padded_size(n, side) >= 0,
            f"{op}.W5",
            f"window dimension {i}: padding {side.low} and {side.high} cuts off more than the {n} elements",
        )
    return [window_count(n, side) for n, side in zip(shape, window, strict=True)]


def is_plain(side: WindowDim) -> bool:
    """Whether position o of the window is element o and nothing else."""
    return side.size == side.stride == 1 and side.low == side.high == 0 and side.base_dilation == 1


def access(
    n: int, number: int, side: WindowDim, o: int, k: int, fill: int | float | None, fill_operand: int | None = None
) -> DimMap:
    """The map of a dimension of n elements that window dimension `number` reads: o its position, k the tap."""
    if is_plain(side):
        return (o,)
    reach = side.window_dilation * (side.size - 1)
    return Access(
        n,
        o,
        mul=side.stride,
        add=(reach if side.reversed else 0) - side.low,
        div=side.base_dilation,
        kernel_factor=k,
        kmul=-side.window_dilation if side.reversed else side.window_dilation,
        fill=fill,
        fill_operand=fill_operand,
        window=number,
    )


def fill_number(monoid: str, dtype: DType) -> int | float:
    """What padding holds for a monoid, as a Python number."""
    fill = around(monoid, dtype)
    if dtype.kind in "biu":
        return int(fill)
    return abs(complex(fill)) if dtype.kind == "c" else float(fill)


def gradient_padding(window: Window, shape: Sequence[int], positions: Sequence[int]) -> list[tuple[int, int]]:
    """The padding of the transposed window: cotangents dilated by the stride, read once by each element they touch."""
    out: list[tuple[int, int]] = []
    for side, n, count in zip(window, shape, positions, strict=True):
        reach = side.window_dilation * (side.size - 1) + 1
        low = reach - side.low - 1
        spread = max(count - 1, 0) * side.stride + 1 if count else 0
        whole = (n - 1) * side.base_dilation + 1 if n else 0
        out.append((low, whole + reach - 1 - spread - low))
    return out
