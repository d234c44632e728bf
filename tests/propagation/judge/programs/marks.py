"""What users may say: open dimensions, replicated axes, priorities, sub-axes, groups, barriers."""

from __future__ import annotations

from typing import Any

import gspmd
from gspmd import numpy as gnp
from gspmd.frontend.annotate import constrain
from gspmd.ir.sharding import parse_sharding
from tests.propagation.judge.programs.make import XY, XYZ, case, marked


def said(x: Any, text: str, mesh: gspmd.Mesh = XY) -> Any:
    return constrain(x, parse_sharding(text, mesh))


def only_inside(x: Any, w: Any, v: Any) -> Any:
    return marked(gnp.tanh(x @ w), "x", "y") @ v


def opened(x: Any, w: Any) -> Any:
    return marked(x @ w, "x", "?")


def closed(x: Any, w: Any) -> Any:
    return marked(x @ w, "x", None)


def kept_whole(x: Any) -> Any:
    """The axis may not be used on a value in between."""
    return gnp.exp(said(gnp.tanh(x), "[x, ?]^(y)"))


def late(x: Any, w: Any) -> Any:
    """The batch first, the weights later."""
    return said(x, "[x, _?]") @ said(w, "[_?, x#1]")


def late_zero(x: Any, w: Any, v: Any) -> Any:
    h = gnp.maximum(said(x, "[x, ?]") @ said(w, "[x?#2, y#1]"), 0.0)
    return h @ said(v, "[y#1, x?#2]")


def sub_axes(x: Any, w: Any) -> Any:
    return said(x, "[y:(1)2, ?]") @ said(w, "[?, y:(2)2]")


def sub_axis_longer(x: Any, y: Any) -> Any:
    return said(x, "[y:(1)2, ?]") + said(y, "[y, ?]")


def grouped(a: Any, b: Any) -> Any:
    a, b = gspmd.shard_as(gnp.tanh(a), gnp.exp(b))
    return a * 2.0, b + 1.0


def fenced(a: Any) -> Any:
    return gnp.exp(gspmd.propagation_barrier(gnp.tanh(a)))


def fenced_forward(a: Any, b: Any) -> Any:
    return gspmd.propagation_barrier(gnp.tanh(a), "forward") + b


CASES = (
    case("inside_only", only_inside, "f32[512, 256]", "f32[256, 1024]", "f32[1024, 256]"),
    case("inside_open", opened, "f32[512, 256]", "f32[256, 1024@y]"),
    case("inside_closed", closed, "f32[512, 256]", "f32[256, 1024@y]"),
    case("outside_only", lambda x, w, v: gnp.tanh(x @ w) @ v, "f32[512@x, 256]", "f32[256, 1024]", "f32[1024, 256]",
         out=("x, y",)),
    case("results_only", lambda x, w: (x @ w, x * 2.0), "f32[512, 256]", "f32[256, 1024]", out=("_, y", "x, _")),
    case("nothing", lambda x, w: x @ w, "f32[512, 256]", "f32[256, 1024]"),
    case("replicated_axis", kept_whole, "f32[512, 256@y]"),
    case("priority_batch_first", late, "f32[512, 256]", "f32[256, 1024]"),
    case("priority_zero", late_zero, "f32[512, 256]", "f32[256, 1024]", "f32[1024, 256]"),
    case("sub_axes_product", sub_axes, "f32[512, 256]", "f32[256, 1024]"),
    case("sub_axis_longer", sub_axis_longer, "f32[512, 256]", "f32[512, 256]"),
    case("group", grouped, "f32[512@x, 256]", "f32[512, 256@y]"),
    case("group_told", grouped, "f32[512@x, 256]", "f32[512, 256]"),
    case("barrier", fenced, "f32[512@x, 256]"),
    case("barrier_back", fenced, "f32[512, 256]", out=("x, y",)),
    case("barrier_forward", fenced_forward, "f32[512@x, 256]", "f32[512, 256@y]"),
    case("open_three_axes", lambda x, y: gspmd.shard(x + y, XYZ, "x", "?"), "f32[512, 256]", "f32[512, 256@z]",
         mesh=XYZ),
)  # fmt: skip
