"""The source text of a kernel, from its plan. Shapes are not in it: one text serves all layers alike.

A kernel is `kernel(lo, hi, block, scratch, table)`: the rows (without outer loops: the elements) to run over, the
number of the partial results to write, the address of the row buffers, and the address of a table of integers: the
length of a row, the sizes of the outer loops, then for each array its address and the bytes that it moves by along each
loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gspmd.ir.dtypes import DType
from gspmd.ir.graph import Node, Value
from gspmd.ops.loop_nest import Form
from gspmd.ops.rules import scalar_type
from gspmd.runtime.fusion.plan import Output, Plan, Work

_HEAD = '''"""A fused kernel, generated."""
from numba import cfunc, types
from gspmd.runtime.fusion.scalars import *


@cfunc(types.void(types.int64, types.int64, types.int64, types.int64, types.int64), cache=True, error_model="numpy")
def kernel(lo, hi, block, scratch, table):
'''
_SINGLE = {"math.exp(": "exp_f32(", "math.tanh(": "tanh_f32(", "math.log(": "log_f32("}
_RANKS = {("max", 4): "rank_high", ("min", 4): "rank_low", ("max", 8): "rank_high64", ("min", 8): "rank_low64"}
_UNRANK = {4: "unrank", 8: "unrank64"}


def source_of(plan: Plan) -> str:
    """The source text of the kernel of a plan."""
    return _Writer(plan).text()


def expression(node: Node, form: Form, names: Sequence[str]) -> str:
    """A node's scalar form over the names of its operands, with vector functions where there are some."""
    text = form.template
    if node.operands and node.operands[0].type.dtype == np.float32:
        for libm, ours in _SINGLE.items():
            text = text.replace(libm, ours)
    return text.format(*names)


class _Writer:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[Value, str] = {}
        self.outputs: dict[Value, int] = {}
        for i, out in enumerate(plan.outputs):
            self.outputs.setdefault(out.value, i)
        self.loops = max(1, plan.outer)
        self.flat = plan.outer == 0

    def text(self) -> str:
        plan = self.plan
        arrays = len(plan.inputs) + len(plan.outputs)
        first = 1 + self.loops
        self.put(f"t = vector(table, {first + arrays * (1 + self.loops)}, np.int64)")
        self.put("n = hi - lo" if self.flat else "n = t[0]")
        for d in range(1, plan.outer):
            self.put(f"n{d} = t[{1 + d}]")
        for k in range(arrays):
            base = first + k * (1 + self.loops)
            self.put(f"a{k} = t[{base}]")
            for d in range(self.loops):
                self.put(f"a{k}s{d} = t[{base + 1 + d}]")
        offset = "scratch"
        for k, value in enumerate(plan.kept):
            self.put(f"b{k} = vector({offset}, n, {scalar_type(value.type.dtype)})")
            offset = f"{offset} + {8} * n"
        self.start_partials()
        if self.flat:
            self.row()
        else:
            self.put("for r in range(lo, hi):")
            self.depth += 1
            self.indices()
            self.row()
            self.depth -= 1
        self.end_partials()
        return _HEAD + "\n".join(self.lines) + "\n"

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def indices(self) -> None:
        """The index of each outer loop, from the number of the row."""
        rest = "r"
        for d in range(self.plan.outer - 1, 0, -1):
            self.put(f"i{d} = {rest} % n{d}")
            self.put(f"q{d} = {rest} // n{d}")
            rest = f"q{d}"
        self.put(f"i0 = {rest}")

    def start_partials(self) -> None:
        for k, out in self.partials():
            name = scalar_type(out.value.type.dtype)
            if out.kind == "column":
                self.put(f"c{k} = vector(a{k} + block * a{k}s0, n, {name})")
            else:
                self.put(f"t{k} = {_start(out.monoid or '', out.value.type.dtype)}")

    def end_partials(self) -> None:
        for k, out in self.partials():
            if out.kind == "total":
                dtype = out.value.type.dtype
                finished = _finish(out.monoid or "", dtype, f"t{k}")
                self.put(f"vector(a{k} + block * a{k}s0, 1, {scalar_type(dtype)})[0] = {finished}")

    def partials(self) -> list[tuple[int, Output]]:
        base = len(self.plan.inputs)
        return [(base + k, o) for k, o in enumerate(self.plan.outputs) if o.kind in ("column", "total")]

    def row(self) -> None:
        """All passes over one row."""
        plan = self.plan
        for k, given in enumerate(plan.inputs):
            name = scalar_type(given.value.type.dtype)
            at = " + ".join([f"a{k}", *(f"i{d} * a{k}s{d}" for d in given.outer)])
            if self.flat and given.along_row:
                at += f" + lo * a{k}s0"
            if given.along_row:
                self.put(f"x{k} = vector({at}, n, {name})")
            else:
                self.put(f"v{k} = vector({at}, 1, {name})[0]")
                self.names[given.value] = f"v{k}"
        for k, out in enumerate(plan.outputs, len(plan.inputs)):
            if out.kind == "each":
                at = (
                    f"a{k} + lo * a{k}s0"
                    if self.flat
                    else " + ".join([f"a{k}", *(f"i{d} * a{k}s{d}" for d in range(plan.outer))])
                )
                self.put(f"y{k} = vector({at}, n, {scalar_type(out.value.type.dtype)})")
        for number in range(plan.passes + 1):
            for work in plan.works:
                if not work.each and work.at == number:
                    self.between(work)
            if number < plan.passes:
                self.one_pass(number)
        for k, out in enumerate(plan.outputs, len(plan.inputs)):
            if out.kind == "row":
                at = " + ".join([f"a{k}", *(f"i{d} * a{k}s{d}" for d in range(plan.outer))])
                self.put(f"vector({at}, 1, {scalar_type(out.value.type.dtype)})[0] = {self.name(out.value)}")

    def name(self, value: Value) -> str:
        root = self.plan.source.get(value, value)
        return self.plan.literals.get(root) or self.names[root]

    def new_name(self, value: Value) -> str:
        return self.names.setdefault(value, f"w{len(self.names)}")

    def expression(self, work: Work) -> str:
        return expression(work.node, work.form, [self.name(v) for v in work.node.operands])

    def between(self, work: Work) -> None:
        """A node on numbers of a row."""
        value = work.node.result
        if work.kind == "total":
            self.fold(work, f"t{self.index(value)}", self.name(work.node.operands[0]))
        else:
            text = self.expression(work)
            self.put(f"{self.new_name(value)} = {text}")

    def index(self, value: Value) -> int:
        return len(self.plan.inputs) + self.outputs[value]

    def fold(self, work: Work, into: str, term: str) -> None:
        self.put(f"{into} = {_step(work.form.monoid or '', work.node.result.type.dtype, into, term)}")

    def one_pass(self, number: int) -> None:
        """One loop over the elements of a row."""
        plan = self.plan
        works = [w for w in plan.works if w.each and w.at == number]
        if not works:
            return
        accumulators = [w for w in works if w.kind == "row"]
        for w in accumulators:
            dtype = w.node.result.type.dtype
            self.put(f"{self.new_name(w.node.result)} = {_start(w.form.monoid or '', dtype)}")
        made = {w.node.result for w in works}
        self.put("for j in range(n):")
        self.depth += 1
        self.loads(works, made)
        for w in works:
            value = w.node.result
            if w.kind == "each":
                self.put(f"{self.new_name(value)} = {self.expression(w)}")
                self.stores(value)
            elif w.kind == "row":
                self.fold(w, self.names[value], self.name(w.node.operands[0]))
            elif w.kind == "total":
                self.fold(w, f"t{self.index(value)}", self.name(w.node.operands[0]))
            else:
                k = self.index(value)
                step = _column_step(w.form.monoid or "", value.type.dtype, f"c{k}[j]", self.name(w.node.operands[0]))
                self.put(f"c{k}[j] = {step}")
        self.depth -= 1
        for w in accumulators:
            name, dtype = self.names[w.node.result], w.node.result.type.dtype
            finished = _finish(w.form.monoid or "", dtype, name)
            if finished != name:
                self.names[w.node.result] = f"{name}f"
                self.put(f"{name}f = {finished}")

    def loads(self, works: list[Work], made: set[Value]) -> None:
        """The elements that this pass reads and does not make."""
        seen: set[Value] = set()
        inputs = {g.value: k for k, g in enumerate(self.plan.inputs) if g.along_row}
        for w in works:
            for v in w.node.operands:
                root = self.plan.source.get(v, v)
                if root in seen or root in made or root in self.plan.literals:
                    continue
                seen.add(root)
                if root in inputs:
                    self.put(f"{self.new_name(root)} = x{inputs[root]}[j]")
                elif root in self.plan.kept:
                    self.put(f"{self.names[root]} = b{self.plan.kept.index(root)}[j]")

    def stores(self, value: Value) -> None:
        name = self.names[value]
        if value in self.plan.kept:
            self.put(f"b{self.plan.kept.index(value)}[j] = {name}")
        for k, out in enumerate(self.plan.outputs, len(self.plan.inputs)):
            if out.value is value:
                self.put(f"y{k}[j] = {name}")


def _ranked(monoid: str, dtype: DType) -> bool:
    return dtype.kind == "f" and (monoid, dtype.itemsize) in _RANKS


def _start(monoid: str, dtype: DType) -> str:
    """The neutral element, as its rank where ranks are compared."""
    name = scalar_type(dtype)
    if dtype.kind == "b":
        return "False" if monoid in ("or", "xor") else "True"
    if monoid in ("max", "min"):
        if _ranked(monoid, dtype):
            return f"{_RANKS[monoid, dtype.itemsize]}({name}({'-' if monoid == 'max' else ''}np.inf))"
        return f"{name}(np.iinfo({name}).{'min' if monoid == 'max' else 'max'})"
    return f"{name}({ {'add': '-0.0' if dtype.kind == 'f' else '0', 'mul': '1', 'and': '-1'}.get(monoid, '0') })"


def _step(monoid: str, dtype: DType, into: str, term: str) -> str:
    """The accumulator with one more term."""
    name = scalar_type(dtype)
    if dtype.kind == "f":
        if monoid == "add":
            return f"sum_of({into}, {term})"
        if monoid == "mul":  # regrouped, an infinity might meet an underflow
            return f"{into} * {term}"
        rank = f"{_RANKS[monoid, dtype.itemsize]}({term})"
        return f"{'max' if monoid == 'max' else 'min'}({into}, {rank})"
    if dtype.kind == "b":
        return {"or": f"{into} or {term}", "and": f"{into} and {term}"}.get(monoid, f"{into} != {term}")
    forms = {"add": "{0} + {1}", "mul": "{0} * {1}", "and": "{0} & {1}", "or": "{0} | {1}", "xor": "{0} ^ {1}"}
    form = forms.get(monoid, f"{{0}} if {{0}} {'>' if monoid == 'max' else '<'} {{1}} else {{1}}")
    return f"{name}({form.format(into, term)})"


def _column_step(monoid: str, dtype: DType, into: str, term: str) -> str:
    """As a step, but nothing is regrouped: elements of a row have nothing to do with one another."""
    if dtype.kind == "f":
        forms = {"add": "{0} + {1}", "mul": "{0} * {1}", "max": "maximum({0}, {1})", "min": "minimum({0}, {1})"}
        return forms[monoid].format(into, term)
    return _step(monoid, dtype, into, term)


def _finish(monoid: str, dtype: DType, name: str) -> str:
    return f"{_UNRANK[dtype.itemsize]}({name})" if _ranked(monoid, dtype) else name
