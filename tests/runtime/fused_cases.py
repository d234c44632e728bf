"""Programs that fuse, as text: what networks and optimizers are made of, and the edges of what a kernel can do."""

from __future__ import annotations

import numpy as np

from gspmd.ir.attrs import ResultShape
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Program, Value
from gspmd.ir.types import TensorType
from gspmd.ops.dot import DOT_GENERAL
from gspmd.ops.elementwise import ADD, EXPONENTIAL, MAXIMUM, MULTIPLY, NEGATE, SUBTRACT, TANH
from gspmd.ops.layout import BROADCAST_IN_DIM, RESHAPE
from gspmd.ops.literal import full
from gspmd.ops.reduce import REDUCE

CASES: dict[str, str] = {
    "masked softmax": """func @f(%x: f32[3, 2, 9, 11], %m: bool[9, 11], %b: f32[11])
  -> (f32[3, 2, 9, 11], f32[3, 2, 9]) stage=optimized {
  %low = constant() value=dense<-1e9 : f32[]> : f32[]
  %lows = broadcast_in_dim(%low) shape=[3, 2, 9, 11] dims=[] : f32[3, 2, 9, 11]
  %mm = broadcast_in_dim(%m) shape=[3, 2, 9, 11] dims=[2, 3] : bool[3, 2, 9, 11]
  %bb = broadcast_in_dim(%b) shape=[3, 2, 9, 11] dims=[3] : f32[3, 2, 9, 11]
  %xb = add(%x, %bb) : f32[3, 2, 9, 11]
  %xm = select(%mm, %xb, %lows) : f32[3, 2, 9, 11]
  %top = reduce(%xm) dims=[3] monoid=max : f32[3, 2, 9]
  %t1 = reshape(%top) shape=[3, 2, 9, 1] : f32[3, 2, 9, 1]
  %tops = broadcast_in_dim(%t1) shape=[3, 2, 9, 11] dims=[0, 1, 2, 3] : f32[3, 2, 9, 11]
  %d = subtract(%xm, %tops) : f32[3, 2, 9, 11]
  %e = exponential(%d) : f32[3, 2, 9, 11]
  %s = reduce(%e) dims=[3] : f32[3, 2, 9]
  %ss = broadcast_in_dim(%s) shape=[3, 2, 9, 11] dims=[0, 1, 2] : f32[3, 2, 9, 11]
  %y = divide(%e, %ss) : f32[3, 2, 9, 11]
  %l = log(%s) : f32[3, 2, 9]
  %z = add(%l, %top) : f32[3, 2, 9]
  return %y, %z }""",
    "cross entropy": """func @f(%x: f32[17, 33], %t: i32[17])
  -> (f32[], f32[33], f32[17, 33]) stage=optimized {
  %i = iota() shape=[17, 33] dtype=i32 dimension=1 : i32[17, 33]
  %tt = broadcast_in_dim(%t) shape=[17, 33] dims=[0] : i32[17, 33]
  %hit = compare(%i, %tt) direction=EQ : bool[17, 33]
  %one = convert(%hit) dtype=f32 : f32[17, 33]
  %p = multiply(%x, %one) : f32[17, 33]
  %r = reduce(%p) dims=[1] : f32[17]
  %a = abs(%r) : f32[17]
  %q = sqrt(%a) : f32[17]
  %loss = reduce(%q) dims=[0] : f32[]
  %g = reduce(%p) dims=[0] : f32[33]
  %rr = broadcast_in_dim(%r) shape=[17, 33] dims=[0] : f32[17, 33]
  %u = subtract(%p, %rr) : f32[17, 33]
  return %loss, %g, %u }""",
    "adam": """func @f(%p: f32[5, 40], %g: f32[5, 40], %m: f32[5, 40], %v: f32[5, 40], %k: f32[])
  -> (f32[5, 40], f32[5, 40], f32[5, 40]) stage=optimized {
  %b = constant() value=dense<0.9 : f32[]> : f32[]
  %c = constant() value=dense<0.1 : f32[]> : f32[]
  %bb = broadcast_in_dim(%b) shape=[5, 40] dims=[] : f32[5, 40]
  %cc = broadcast_in_dim(%c) shape=[5, 40] dims=[] : f32[5, 40]
  %kk = broadcast_in_dim(%k) shape=[5, 40] dims=[] : f32[5, 40]
  %m1 = multiply(%m, %bb) : f32[5, 40]
  %m2 = multiply(%g, %cc) : f32[5, 40]
  %mn = add(%m1, %m2) : f32[5, 40]
  %g2 = multiply(%g, %g) : f32[5, 40]
  %v1 = multiply(%v, %bb) : f32[5, 40]
  %vn = add(%v1, %g2) : f32[5, 40]
  %r = rsqrt(%vn) : f32[5, 40]
  %s = multiply(%mn, %r) : f32[5, 40]
  %s2 = multiply(%s, %kk) : f32[5, 40]
  %pn = subtract(%p, %s2) : f32[5, 40]
  return %pn, %mn, %vn }""",
    "bias, tanh and the gradient's sums": """func @f(%x: f64[6, 5, 16], %b: f64[16])
  -> (f64[6, 5, 16], f64[16], f64[]) stage=optimized {
  %bb = broadcast_in_dim(%b) shape=[6, 5, 16] dims=[2] : f64[6, 5, 16]
  %a = add(%x, %bb) : f64[6, 5, 16]
  %t = tanh(%a) : f64[6, 5, 16]
  %u = multiply(%t, %a) : f64[6, 5, 16]
  %c = reduce(%u) dims=[0, 1] : f64[16]
  %top = reduce(%u) dims=[0, 1, 2] monoid=max : f64[]
  return %u, %c, %top }""",
    "columns of floats": """func @f(%x: f32[9, 20])
  -> (f32[20], f32[20], f32[20], f32[]) stage=optimized {
  %y = negate(%x) : f32[9, 20]
  %a = reduce(%y) dims=[0] monoid=max : f32[20]
  %b = reduce(%y) dims=[0] monoid=min : f32[20]
  %c = reduce(%y) dims=[0] monoid=mul : f32[20]
  %d = reduce(%y) dims=[0, 1] monoid=min : f32[]
  return %a, %b, %c, %d }""",
    "integers and bools": """func @f(%x: i32[9, 20], %y: i32[9, 20])
  -> (bool[9], i32[9], i32[20], i32[9], bool[20], i32[]) stage=optimized {
  %z = multiply(%x, %y) : i32[9, 20]
  %less = compare(%z, %y) direction=LT : bool[9, 20]
  %any = reduce(%less) dims=[1] monoid=or : bool[9]
  %sum = reduce(%z) dims=[1] : i32[9]
  %top = reduce(%z) dims=[0] monoid=max : i32[20]
  %bits = reduce(%z) dims=[1] monoid=xor : i32[9]
  %all = reduce(%less) dims=[0] monoid=and : bool[20]
  %low = reduce(%z) dims=[0, 1] monoid=min : i32[]
  return %any, %sum, %top, %bits, %all, %low }""",
    "functions in one loop": """func @f(%x: f32[1999]) -> (f32[1999]) stage=optimized {
  %a = tanh(%x) : f32[1999]
  %b = exponential(%a) : f32[1999]
  %c = multiply(%b, %x) : f32[1999]
  %d = add(%c, %a) : f32[1999]
  return %d }""",
    "one loop": """func @f(%x: f32[1, 300], %k: f32[1, 1])
  -> (f32[1, 300], f32[]) stage=optimized {
  %i = iota() shape=[300] dtype=f32 dimension=0 : f32[300]
  %j = broadcast_in_dim(%i) shape=[1, 300] dims=[1] : f32[1, 300]
  %kk = broadcast_in_dim(%k) shape=[1, 300] dims=[0, 1] : f32[1, 300]
  %a = multiply(%x, %kk) : f32[1, 300]
  %b = add(%a, %j) : f32[1, 300]
  %s = reduce(%b) dims=[0, 1] : f32[]
  return %b, %s }""",
}


def random_program(seed: int) -> Program:
    """A program of element-wise nodes, broadcasts, reductions and products on a few shapes that get mixed up."""
    rng = np.random.default_rng(seed)
    builder = Builder()
    n = 16
    values: list[Value] = [builder.param(TensorType("f32", s)) for s in ((n, n), (n, n), (n,), (3, n, n), (n, 1))]
    unary, binary = (NEGATE, TANH, EXPONENTIAL), (ADD, SUBTRACT, MULTIPLY, MAXIMUM)
    for _ in range(int(rng.integers(8, 40))):
        x = values[int(rng.integers(len(values)))]
        kind, shape = int(rng.integers(8)), x.type.shape
        if kind == 0:
            y = TANH(builder, unary[int(rng.integers(3))](builder, x))
        elif kind in (1, 2, 3):
            same = [v for v in values if v.type == x.type]
            y = TANH(builder, binary[int(rng.integers(4))](builder, x, same[int(rng.integers(len(same)))]))
        elif kind == 4 and len(shape) > 1:
            dims = tuple(sorted(rng.choice(len(shape), int(rng.integers(1, len(shape))), replace=False).tolist()))
            y = REDUCE(builder, x, dims=dims, monoid=("add", "max")[int(rng.integers(2))])
        elif kind == 5:
            wide = (n, n) if len(shape) < 2 or 1 in shape else (3, n, n)
            dims = (len(wide) - 2,) if shape == (n,) and rng.integers(2) else tuple(range(len(wide)))[-len(shape) :]
            if any(m not in (1, wide[d]) for m, d in zip(shape, dims, strict=True)):
                continue
            y = BROADCAST_IN_DIM(builder, x, shape=ResultShape(wide), dims=dims)
        elif kind == 6 and shape == (n, n):
            y = TANH(builder, DOT_GENERAL(builder, x, values[0], lhs_contract=(1,), rhs_contract=(0,)))
        elif kind == 7 and len(shape) == 1:
            y = RESHAPE(builder, x, shape=ResultShape((*shape, 1)))
        else:
            y = MULTIPLY(builder, x, full(builder, 0.5, "f32", shape))
        values.append(y)
    picks = [values[int(i)] for i in rng.choice(len(values), 4)]
    return Program.of("random", builder.region([*picks, values[-1]]), None, "optimized")
