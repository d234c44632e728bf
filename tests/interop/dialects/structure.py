"""Modules of control flow, calls, tuples, tokens, random numbers, custom calls, collectives, and Shardy's ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from gspmd.kernels import random
from tests.interop.dialects.case import Case, floats, generic, module

X = floats(3, 4)
GRID = floats(8, 8)
STATE = np.array([7, 9], np.uint64)
BOTH = "tuple<$x, tuple<$x, !stablehlo.token>>"
CONSTANT = '%{name} = "stablehlo.constant"() {{value = dense<{value}> : tensor<{dtype}>}} : () -> tensor<{dtype}>\n'


def _constant(name: str, value: Any, dtype: str = "i32") -> str:
    return CONSTANT.format(name=name, value=value, dtype=dtype)


# -- control flow, tokens and tuples -----------------------------------------------------------------------------------

LOOP = (
    _constant("n", 3)
    + _constant("one", 1)
    + """%t = stablehlo.create_token : !stablehlo.token
%r:3 = "stablehlo.while"(%i, %x, %t) ({
^bb0(%c: $i, %y: $x, %u: !stablehlo.token):
  %p = "stablehlo.compare"(%c, %n) {comparison_direction = #stablehlo<comparison_direction LT>} : ($i, $i) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
}, {
^bb0(%c: $i, %y: $x, %u: !stablehlo.token):
  %d = stablehlo.add %c, %one : $i
  %z = stablehlo.add %y, %x : $x
  %w = stablehlo.after_all %u, %t : !stablehlo.token
  stablehlo.return %d, %z, %w : $i, $x, !stablehlo.token
}) : ($i, $x, !stablehlo.token) -> ($i, $x, !stablehlo.token)
return %r#1 : $0"""
)
IF = """%r:2 = "stablehlo.if"(%p) ({
  %t = stablehlo.create_token : !stablehlo.token
  %a = stablehlo.add %x, %x : $x
  stablehlo.return %a, %t : $x, !stablehlo.token
}, {
  %t = stablehlo.create_token : !stablehlo.token
  stablehlo.return %x, %t : $x, !stablehlo.token
}) : (tensor<i1>) -> ($x, !stablehlo.token)
return %r#0 : $0"""
CASE = """%r = "stablehlo.case"(%i) ({
  stablehlo.return %x : $x
}, {
  %a = stablehlo.negate %x : $x
  stablehlo.return %a : $x
}) : ($i) -> $0
return %r : $0"""
TUPLE = f"""%t = stablehlo.create_token : !stablehlo.token
%n = stablehlo.negate %x : $x
%a = "stablehlo.tuple"(%n, %t) : ($x, !stablehlo.token) -> tuple<$x, !stablehlo.token>
%b = "stablehlo.tuple"(%x, %a) : ($x, tuple<$x, !stablehlo.token>) -> {BOTH}
%d = "stablehlo.get_tuple_element"(%b) {{index = 1 : i32}} : ({BOTH}) -> tuple<$x, !stablehlo.token>
%e = "stablehlo.get_tuple_element"(%d) {{index = 0 : i32}} : (tuple<$x, !stablehlo.token>) -> $x
return %e : $0"""
TOKENS = """%t = stablehlo.create_token : !stablehlo.token
%u = stablehlo.after_all %t, %t : !stablehlo.token
%v:2 = stablehlo.optimization_barrier %x, %u : $x, !stablehlo.token
return %v#0 : $0"""
HELPERS = """func.func private @both(%a: $x, %b: $x) -> ($x, $x) {
  %0 = stablehlo.add %a, %b : $x
  %1 = stablehlo.subtract %a, %b : $x
  return %0, %1 : $x, $x
}
func.func private @twice(%a: $x) -> $x {
  %0:2 = func.call @both(%a, %a) : ($x, $x) -> ($x, $x)
  return %0#0 : $x
}
"""
CALL = """%0:2 = func.call @both(%x, %y) : ($x, $x) -> ($x, $x)
return %0#1, %0#0 : $x, $x"""
COMPOSITE = """%0 = stablehlo.composite "my.twice" %x {decomposition = @twice, composite_attributes = {n = 2 : i64}} :
  ($x) -> $x
return %0 : $0"""


def _scan(reverse: bool) -> str:
    return f"""%r:2 = "chlo.scan"(%x, %c) ({{
^bb0(%a: $c, %b: $c):
  %t = stablehlo.add %b, %b : $c
  %s = stablehlo.add %a, %t : $c
  stablehlo.return %s, %s : $c, $c
}}) {{dimension = 0 : i64, is_reverse = {str(reverse).lower()}, operandSegmentSizes = array<i32: 1, 1>,
  resultSegmentSizes = array<i32: 1, 1>}} : ($x, $c) -> ($x, $c)
return %r#0, %r#1 : $x, $c"""


def _scanned(x: Any, c: Any) -> tuple[Any, Any]:
    out = []
    for a in x:
        c = a + c * 2
        out.append(c)
    return np.stack(out), c


def _scanned_back(x: Any, c: Any) -> tuple[Any, Any]:
    out, last = _scanned(x[::-1], c)
    return out[::-1], last


_CARRY = {"x": X, "c": floats(4, seed=1)}
_ORDERED = ("create_token", "after_all", "optimization_barrier")
CASES: list[Case] = [
    module("stablehlo.while", LOOP, lambda i, x: x * 4, i=np.int32(0), x=X),
    module("stablehlo.if", IF, lambda p, x: 2 * x, p=np.array(True), x=X),
    module("stablehlo.if", IF, lambda p, x: x, p=np.array(False), x=X),
    *(module("stablehlo.case", CASE, lambda i, x: -x if i else x, i=np.int32(i), x=X) for i in (0, 1, 9)),
    *(module(f"stablehlo.{op}", TUPLE, np.negative, x=X) for op in ("tuple", "get_tuple_element")),
    *(module(f"stablehlo.{op}", TOKENS, lambda x: x, x=X) for op in _ORDERED),
    module("func.call", CALL, lambda x, y: (x - y, x + y), before=HELPERS, x=X, y=X + 1),
    module("stablehlo.composite", COMPOSITE, lambda x: 2 * x, before=HELPERS, x=X),
    module("chlo.scan", _scan(False), _scanned, **_CARRY),
    module("chlo.scan", _scan(True), _scanned_back, **_CARRY),
]  # fmt: skip

# -- random numbers ----------------------------------------------------------------------------------------------------


def _bits(state: Any) -> tuple[Any, Any]:
    """What Philox gives: our kernel's, which other tests hold against the specification."""
    return random.random_block(True, np.dtype(np.uint32), state, (3, 5), (0, 0), (3, 5))


def _drawn(distribution: str, low: str, high: str, dtype: str, check: str) -> Case:
    """Whether drawn numbers are as they should be: the specification does not say which they are."""
    body = f"""%s = "stablehlo.constant"() {{value = dense<[40, 50]> : tensor<2xi64>}} : () -> tensor<2xi64>
{_constant("low", low, dtype)}{_constant("high", high, dtype)}{_constant("edge", check, dtype)}
%v = "stablehlo.rng"(%low, %high, %s) {{rng_distribution = #stablehlo<rng_distribution {distribution}>}} :
  (tensor<{dtype}>, tensor<{dtype}>, tensor<2xi64>) -> tensor<40x50x{dtype}>
%e = stablehlo.broadcast_in_dim %edge, dims = [] : (tensor<{dtype}>) -> tensor<40x50x{dtype}>
%p = stablehlo.compare LT, %v, %e : (tensor<40x50x{dtype}>, tensor<40x50x{dtype}>) -> tensor<40x50xi1>
%c = stablehlo.convert %p : (tensor<40x50xi1>) -> tensor<40x50xi32>
{_constant("zero", 0)}{_constant("some", 850)}{_constant("most", 1150)}
%n = stablehlo.reduce(%c init: %zero) applies stablehlo.add across dimensions = [0, 1] :
  (tensor<40x50xi32>, tensor<i32>) -> tensor<i32>
%b = stablehlo.clamp %some, %n, %most : tensor<i32>
%r = "stablehlo.compare"(%b, %n) {{comparison_direction = #stablehlo<comparison_direction EQ>}} :
  (tensor<i32>, tensor<i32>) -> tensor<i1>
return %r : $0"""
    return module("stablehlo.rng", body, lambda: np.array(True))


CASES += [
    generic(
        "stablehlo.rng_bit_generator", _bits, STATE, attrs="rng_algorithm = #stablehlo<rng_algorithm PHILOX>"
    ),
    _drawn("UNIFORM", "2.0", "4.0", "f32", "3.0"),
    _drawn("NORMAL", "1.0", "4.0", "f64", "1.0"),
    _drawn("UNIFORM", "10", "20", "i32", "15"),
]  # fmt: skip

# -- custom calls ------------------------------------------------------------------------------------------------------


def _called(target: str, want: Any, *arrays: Any, more: str = "") -> Case:
    return generic("stablehlo.custom_call", want, *arrays, attrs=f'call_target_name = "{target}"{more}')


_PACKED = tuple(np.ascontiguousarray(y.T) if y.ndim == 2 else y for y in np.linalg.qr(X.T, "raw"))


def _largest(x: Any) -> tuple[Any, Any]:
    order = np.argsort(-x, 1)[:, :2]
    return np.take_along_axis(x, order, 1), order.astype(np.int32)


def _smallest(x: Any) -> tuple[Any, Any]:
    order = np.argsort(x, 1, kind="stable")[:, :2]
    return np.take_along_axis(x, order, 1), order.astype(np.int32)


CASES += [
    _called("annotate_device_placement", lambda x: x, X, more=", has_side_effect = true"),
    _called("LayoutConstraint", lambda x: x, X),
    _called("mhlo.erf", lambda x: sp.erf(x), X,
            more=", mhlo.attributes = {}, mhlo.version = 1 : i64"),
    _called("mhlo.topk", _largest, X, more=", mhlo.attributes = {k = 2 : i64, largest = true}"),
    _called("mhlo.topk", _smallest, X, more=", mhlo.attributes = {k = 2 : i64, largest = false}"),
    _called("mhlo.topk", _smallest, np.array([[3, -128, 7, -128]], np.int8),
            more=", mhlo.attributes = {k = 2 : i64, largest = false}"),
    _called("Qr", lambda x: _PACKED, X.T),
    _called("ProductOfElementaryHouseholderReflectors", lambda a, t: np.linalg.qr(X.T)[0], *_PACKED),
    _called("Eigh", lambda x: (np.eye(2, dtype=np.float32), np.array([2, 5], np.float32)),
            np.array([[2, 9], [0, 5]], np.float32),
            more=', backend_config = "1,1,100,1e-6", api_version = 1 : i32'),
    _called("LuDecomposition", lambda x: (
                np.array([[4, 2], [0.5, 1]], np.float32), np.array([1, 1], np.int32), np.array([1, 0], np.int32)),
            np.array([[2, 2], [4, 2]], np.float32)),
    _called("Sharding", lambda x: x, X, more=', mhlo.sharding = "{devices=[1,2]<=[2]}"'),
]  # fmt: skip

# -- collectives of one process ----------------------------------------------------------------------------------------

ONE = "replica_groups = dense<[[0]]> : tensor<1x1xi64>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 0, type = 0>"
SUM = """({ ^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %s = stablehlo.add %p, %q : tensor<f32>
  stablehlo.return %s : tensor<f32>
})"""


def _same(x: Any) -> Any:
    return x


CASES += [
    generic("stablehlo.all_gather", _same, X, attrs=f"all_gather_dim = 0 : i64, {ONE}"),
    generic("stablehlo.all_reduce", _same, X, attrs=ONE, regions=SUM),
    generic("stablehlo.reduce_scatter", _same, X, attrs=f"scatter_dimension = 0 : i64, {ONE}", regions=SUM),
    generic("stablehlo.all_to_all", _same, X, attrs="split_dimension = 0 : i64, concat_dimension = 1 : i64, "
            f"split_count = 1 : i64, {ONE}"),
    generic("stablehlo.collective_permute", _same, X, attrs="source_target_pairs = dense<[[0, 0]]> : tensor<1x2xi64>"),
    generic("stablehlo.collective_broadcast", _same, X, attrs=ONE),
    generic("stablehlo.cross-replica-sum", _same, X, attrs=ONE),
    generic("stablehlo.partition_id", lambda: np.uint32(0)),
    generic("stablehlo.replica_id", lambda: np.uint32(0)),
]  # fmt: skip

# -- Shardy ------------------------------------------------------------------------------------------------------------

MESH = 'sdy.mesh @m = <["x"=2, "y"=2]>\n'
ROWS, COLUMNS, WHOLE = '<@m, [{"x"}, {}]>', '<@m, [{}, {"x"}]>', "<@m, [{}, {}]>"
PARTS = '<@m, [{}, {}], unreduced={"x"}>'
_LINES = {
    "sharding_constraint": f"sdy.sharding_constraint %x {ROWS}",
    "reshard": f"sdy.reshard %x {COLUMNS}",
    "all_slice": f'sdy.all_slice [{{"x"}}, {{}}] %whole out_sharding={ROWS}',
    "all_gather": f'sdy.all_gather [{{"x"}}, {{}}] %rows out_sharding={WHOLE}',
    "all_to_all": f'sdy.all_to_all [{{"x"}}: 0->1] %rows out_sharding={COLUMNS}',
    "collective_permute": 'sdy.collective_permute %rows out_sharding=<@m, [{"y"}, {}]>',
    "replicated_to_unreduced": f'sdy.replicated_to_unreduced {{"x"}} %whole out_sharding={PARTS}',
    "sharded_to_unreduced": f'sdy.sharded_to_unreduced [{{"x"}}, {{}}] %rows out_sharding={PARTS}',
    "all_reduce": f'sdy.all_reduce {{"x"}} %parts out_sharding={WHOLE}',
    "reduce_scatter": f'sdy.reduce_scatter [{{"x"}}, {{}}] %parts out_sharding={ROWS}',
    "propagation_barrier": "sdy.propagation_barrier %x allowed_direction=NONE",
    "data_flow_edge": f"sdy.data_flow_edge %once sharding={ROWS}",
}
_BEFORE = f"""%once = stablehlo.optimization_barrier %x : $x
%rows = sdy.sharding_constraint %x {ROWS} : $x
%whole = sdy.sharding_constraint %x {WHOLE} : $x
%parts = sdy.replicated_to_unreduced {{"x"}} %whole out_sharding={PARTS} : $x
"""


def _sdy(name: str, body: str) -> Case:
    return module(f"sdy.{name}", _BEFORE + body, lambda x: 2 * x, before=MESH, x=GRID)


for _name, _line in _LINES.items():
    CASES.append(_sdy(_name, f"%r = {_line} : $x\n%t = stablehlo.add %r, %r : $x\nreturn %t : $0"))
_EDGE = """%r = func.call @same(%x) : ($x) -> $x
%e = sdy.func_data_flow_edge %r : $x
%t = stablehlo.add %e, %e : $x
return %t : $0"""
_SAME = "func.func private @same(%a: $x) -> $x {\n  return %a : $x\n}\n"
CASES += [
    module("sdy.func_data_flow_edge", _EDGE, lambda x: 2 * x, before=_SAME, x=GRID),
    _sdy("sharding_group", "sdy.sharding_group %x group_id=0 : $x\n%t = stablehlo.add %x, %x : $x\nreturn %t : $0"),
    _sdy("named_computation", f"""%r = sdy.named_computation<"f">(%x) in_shardings=[{ROWS}]
  out_shardings=[{COLUMNS}] (%y: $x) {{
  %t = stablehlo.add %y, %y : $x
  sdy.return %t : $x
}} : ($x) -> $x
return %r : $0"""),
    _sdy("manual_computation", f"""%r = sdy.manual_computation(%x) in_shardings=[{ROWS}] out_shardings=[{ROWS}]
  manual_axes={{"x"}} (%y: tensor<4x8xf32>) {{
  %t = stablehlo.add %y, %y : tensor<4x8xf32>
  sdy.return %t : tensor<4x8xf32>
}} : ($x) -> $x
return %r : $0"""),
]  # fmt: skip
