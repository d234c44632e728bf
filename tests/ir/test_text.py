"""The text of programs: round trips of everything that can be printed, and an error with a place for anything else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gspmd.ir.attr_text import attrs_text, read_attrs
from gspmd.ir.attrs import Attrs, Dense, ResultShape, Window, WindowDim
from gspmd.ir.axes import Axes
from gspmd.ir.builder import Builder
from gspmd.ir.dense_text import dense_text, read_dense
from gspmd.ir.dtypes import DTYPES, DType, dtype_kind
from gspmd.ir.errors import ParseError
from gspmd.ir.graph import Program, Value
from gspmd.ir.lexer import Scanner
from gspmd.ir.location import Location
from gspmd.ir.mesh import Axis, Mesh
from gspmd.ir.parser import parse_bytes, parse_example, parse_program
from gspmd.ir.printer import print_node, print_program, value_names
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.ir.verify import verify
from gspmd.ops import OPS
from tests.structure import same_structure

MESH = Mesh({"data": 2, "model": 4})
EXAMPLES = [(op.name, text) for op in OPS.values() for text in op.examples]

SHARDED = """\
mesh @mesh = [data=2, model=4]
func @f(%x: f32[8@data, 4], %y: f32[4, 8@model:(1)2]) -> (f32[8@data, 8@model:(1)2]) stage=explicit {
  %h = dot_general(%x, %y) lhs_contract=[1] rhs_contract=[0] : f32[8@data, 8@model:(1)2]  // a.py:3
  %0 = tanh(%h) : f32[8@data, 8@model:(1)2]  // "my model.py":4
  return %0
}
"""
LOCAL = """\
mesh @m = [data=2] devices=[1,0]
func @f(%x: f32[4]) -> (f32[4]) stage=local global (f32[8@data]) -> (f32[8@data]) {
  %0 = tanh(%x) : f32[4]
  return %0
}
"""
LOOP = """\
func @f(%x: f32[4], %i: i32[]) -> (f32[4]) stage=annotated {
  %0, %1 = while(%i, %x) (%j: i32[], %z: f32[4]) {
    %n = constant() value=dense<3 : i32[]> : i32[]
    %go = compare(%j, %n) direction=LT : bool[]
    return %go
  } (%j_1: i32[], %z_1: f32[4]) {
    %one = constant() value=dense<1 : i32[]> : i32[]
    %2 = add(%j_1, %one) : i32[]
    return %2, %z_1
  } : (i32[], f32[4])
  return %1
}
"""
TEXTS = [SHARDED, LOCAL, LOOP]


# -- round trips ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", TEXTS)
def test_printed_text_is_read_and_printed_again(text: str) -> None:
    assert print_program(parse_program(text, OPS)) == text


@pytest.mark.parametrize(("name", "text"), EXAMPLES, ids=[f"{n}-{i}" for i, (n, _) in enumerate(EXAMPLES)])
def test_examples_of_all_ops_survive(name: str, text: str) -> None:
    program = parse_example(text, OPS)
    assert program.body.nodes[0].op is OPS[name]
    printed = print_program(program)
    again = parse_program(printed, OPS)
    assert print_program(again) == printed
    assert same_structure(program, again)


def test_an_example_may_declare_a_mesh_and_state_its_result() -> None:
    program = parse_example("mesh @m = [data=2] tanh(f32[4@data]) : f32[4@data]", OPS)
    assert program.mesh == Mesh({"data": 2})
    assert print_node(program.body.nodes[0], value_names(program)) == "%1 = tanh(%0) : f32[4@data]"


def test_structure_leaves_names_and_lines_out_and_nothing_else() -> None:
    program = parse_program(SHARDED, OPS)
    assert same_structure(program, parse_program(SHARDED.replace("%h", "%k").replace("a.py:3", "b.py:9"), OPS))
    for old, new in (("explicit", "propagated"), ("@data", ""), ("tanh", "exponential"), ("model=4", "model=8")):
        assert not same_structure(program, parse_program(SHARDED.replace(old, new), OPS))
    for old, new in (("add(%j_1, %one)", "add(%one, %j_1)"), ("return %2,", "return %j_1,"), ("<1 ", "<2 ")):
        assert not same_structure(parse_program(LOOP, OPS), parse_program(LOOP.replace(old, new), OPS))


def test_the_program_in_the_documentation_is_one() -> None:
    page = (Path(__file__).parents[2] / "docs" / "ir.md").read_text()
    text = page.split("```text\n")[1].split("```")[0]
    program = parse_program(text, OPS)
    verify(program, OPS)
    assert print_program(program) == text


def test_names_are_hints_made_unique() -> None:
    b = Builder()
    x = b.param(TensorType("f32", (4,)), "x")
    values = [OPS["tanh"](b, x, name=n) for n in ("x", "x_1", "", "a b", "1", "", "x")]
    program = Program.of("f", b.region(values), None)
    names = value_names(program)
    assert [names[v] for v in [x, *values]] == ["x", "x_2", "x_1", "0", "a_b", "1", "2", "x_3"]
    text = print_program(program)
    assert print_program(parse_program(text, OPS)) == text
    assert text.endswith("return %x_2, %x_1, %0, %a_b, %1, %2, %x_3\n}\n")


def test_regions_may_use_a_name_again() -> None:
    text = LOOP.replace("%j_1", "%j").replace("%z_1", "%z")
    assert print_program(parse_program(text, OPS)) == LOOP


@pytest.mark.parametrize("file", ["model.py", "/a/b.py", "my model.py", "a\nb", 'q".py', "C:\\x.py", "", "é.py", "a:1"])
def test_locations_are_exact(file: str) -> None:
    b = Builder(Location(file, 12))
    y = OPS["tanh"](b, b.param(TensorType("f32", ())))
    text = print_program(Program.of("f", b.region([y]), None))
    assert parse_program(text, OPS).body.nodes[0].loc == Location(file, 12)


def test_without_a_comment_the_location_is_the_line_of_the_text() -> None:
    program = parse_program(LOOP, OPS, "loop.gspmd")
    assert [n.loc for n in program.body.walk()] == [Location("loop.gspmd", i) for i in (2, 3, 4, 7, 8)]


# -- attributes -------------------------------------------------------------------------------------------------------


NO_SHAPE, NO_WINDOW = ResultShape(), Window()


@dataclass(frozen=True, slots=True)
class Inner:
    a: int
    b: str = "x"


@dataclass(frozen=True, slots=True)
class Everything(Attrs):
    required: int
    whole: int = 0
    number: float = 0.0
    maybe: float | None = None
    mixed: int | float | bool | str | None = None
    flag: bool = False
    word: str = ""
    rows: tuple[tuple[int, ...], ...] = ()
    pair: tuple[int, str] = (0, "a")
    dtype: DType | None = None
    shape: ResultShape = NO_SHAPE
    window: Window = NO_WINDOW
    axes: Axes = ()
    sharding: Sharding | None = None
    inner: Inner | None = None
    inners: tuple[Inner, ...] = ()
    mode: Literal["up", "down"] = "up"
    value: Dense | None = None


AXES = st.sampled_from([(), (Axis("data", 1, 2),), (Axis("model", 2, 2), Axis("data", 1, 2))])
DIMS = st.builds(WindowDim, st.integers(1, 5), st.integers(1, 3), low=st.integers(-2, 2), reversed=st.booleans())
INNER = st.builds(Inner, st.integers(), st.text(max_size=5))
SHARDINGS = st.sampled_from([Sharding.of(MESH, "data?", None, unreduced="model"), Sharding.of(MESH), None])
EVERYTHING = st.builds(
    Everything,
    required=st.integers(-(10**20), 10**20),
    number=st.floats(),
    maybe=st.none() | st.floats(),
    mixed=st.none() | st.integers(-99, 99) | st.floats() | st.booleans() | st.text(),
    flag=st.booleans(),
    word=st.text() | st.sampled_from(["none", "true", "a_b", "inf"]),
    rows=st.lists(st.lists(st.integers(-9, 9), max_size=3).map(tuple), max_size=3).map(tuple),
    pair=st.tuples(st.integers(-9, 9), st.text(max_size=4)),
    dtype=st.none() | st.sampled_from(list(DTYPES.values())),
    shape=st.lists(st.integers(0, 9), max_size=3).map(ResultShape),
    window=st.lists(DIMS, max_size=3).map(Window),
    axes=AXES,
    sharding=SHARDINGS,
    inner=st.none() | INNER,
    inners=st.lists(INNER, max_size=2).map(tuple),
    mode=st.sampled_from(["up", "down"]),
    value=st.none() | st.builds(Dense, st.lists(st.floats(width=32), max_size=3).map(lambda x: np.array(x, "f4"))),
)


@given(EVERYTHING)
@settings(max_examples=200)
def test_attributes_survive(attrs: Everything) -> None:
    text = attrs_text(attrs, MESH)
    scanner = Scanner(text, "<attrs>")
    again = read_attrs(scanner, Everything, MESH, "op")
    assert attrs_text(again, MESH) == text and scanner.pos == len(text)
    # NaN is not equal to itself, so fields are compared by their repr, which tells -0.0 from 0.0 as well.
    assert repr(again) == repr(attrs)
    assert isinstance(again, Everything) and again.value == attrs.value and type(again.window) is Window


def test_defaults_are_left_out_but_minus_zero_is_not_zero() -> None:
    assert attrs_text(Everything(1)) == "required=1"
    assert attrs_text(Everything(1, number=-0.0)) == "required=1 number=-0.0"
    dims = (WindowDim(3, 2), WindowDim(3, 1))
    assert attrs_text(Everything(1, window=Window(dims))) == "required=1 window={size=[3, 3] stride=[2, 1]}"
    assert attrs_text(Everything(1, inner=Inner(2, "a b"))) == 'required=1 inner=inner{a=2 b="a b"}'
    assert attrs_text(Everything(1, axes=MESH.whole), MESH) == "required=1 axes=[data, model]"


BYTES = {"float": [0x00, 0x80, 0x3F, 0x7F, 0xFF, 0xC0], "complex": [0x00, 0x80, 0x3F, 0x7F, 0xFF]}


@given(st.data())
@settings(max_examples=300)
def test_constants_are_exact(data: Any) -> None:
    name = data.draw(st.sampled_from(list(DTYPES)))
    dtype = DTYPES[name]
    shape = tuple(data.draw(st.lists(st.integers(0, 3), max_size=3)))
    count = int(np.prod(shape))
    if dtype_kind(dtype) == "bool" or name in ("i2", "i4", "u2", "u4"):
        low = {"i2": -2, "i4": -8}.get(name, 0)
        high = {"i2": 1, "i4": 7, "u2": 3, "u4": 15}.get(name, 1)
        items = data.draw(st.lists(st.integers(low, high), min_size=count, max_size=count))
        array = np.array(items, np.int8).astype(dtype).reshape(shape)
    else:
        wanted = BYTES.get(dtype_kind(dtype))
        byte = st.integers(0, 255) if wanted is None else st.sampled_from(wanted) | st.integers(0, 255)
        size = count * dtype.itemsize
        raw = bytes(data.draw(st.lists(byte, min_size=size, max_size=size)))
        array = np.frombuffer(raw, dtype).reshape(shape)
    dense = Dense(array)
    assert read_dense(Scanner(dense_text(dense), "<dense>")) == dense


def test_constants_read_well() -> None:
    show = lambda x, t: dense_text(Dense(np.array(x, DTYPES[t])))  # noqa: E731
    assert show(0, "f32") == "dense<0.0 : f32[]>"
    assert show([[1, 2.5], [-0.0, np.inf]], "f32") == "dense<[[1.0, 2.5], [-0.0, inf]] : f32[2,2]>"
    assert show(np.ones((100, 100)), "bf16") == "dense<1.0 : bf16[100,100]>"
    assert show([True, False], "bool") == "dense<[true, false] : bool[2]>"
    assert show(0.1, "f32") == "dense<0.1 : f32[]>"
    assert show(1 - 2j, "c64") == "dense<(1.0,-2.0) : c64[]>"
    assert show(np.zeros((0, 3)), "f32") == "dense<[] : f32[0,3]>"
    assert show(np.arange(100), "u8").startswith('dense<"0x000102')


# -- errors -----------------------------------------------------------------------------------------------------------


def broken(old: str, new: str, text: str = SHARDED) -> str:
    assert old in text
    return text.replace(old, new, 1)


ERRORS = [
    (broken("tanh", "tan_h"), "4:8: unknown op 'tan_h'; did you mean"),
    (broken("tanh(%h)", "tanh(%g)"), "4:13: unknown value %g"),
    (broken("%0 =", "%h ="), "4:3: %h is defined twice"),
    (broken("%y:", "%x:"), "2:29: the parameter %x is defined twice"),
    (broken("tanh(%h)", "tanh(%h, %h)"), "4:8: "),
    (broken("dot_general(%x, %y)", "dot_general(%x)"), "3:8: "),
    (broken("rhs_contract", "rhs_contracts"), "3:45: dot_general has no attribute 'rhs_contracts'; did you mean"),
    (broken("rhs_contract", "rhs_contracts"), "its attributes: lhs_batch, rhs_batch, lhs_contract"),
    (broken("rhs_contract=[0]", "lhs_contract=[0]"), "'lhs_contract' of dot_general is given twice"),
    (broken("[0]", "[a]"), "3:59: expected a whole number, found 'a'"),
    (broken("lhs_contract=[1]", "lhs_contract=[0]"), "3:8: dot_general.C"),
    (broken("f32[4, 8", "f33[4, 8"), "unknown element type 'f33'"),
    (broken("f32[4, 8", "f32[4, -8"), "'-8' is no size of a dimension"),
    (broken("8@data", "8@date"), "no axis 'date'"),
    (broken(": f32[8@data, 8", ": f32[8@data, 9"), "dot_general gives f32[8, 8], but the text says"),
    (broken("mesh @mesh = [data=2, model=4]\n", ""), "a sharding needs a mesh"),
    (broken("return %0\n}\n", "return %0\n"), "expected '}', found the end of the text"),
    (broken("func", "fun"), "2:1: expected 'func'"),
    (broken("explicit", "explizit"), "unknown stage 'explizit'"),
    (broken("return %0", "return %x"), "but it returns f32[8@data, 4]"),
    (broken("%0 =", "%0, %1 ="), "tanh has 1 results, but 2 names are given"),
    (SHARDED + "}", "7:1: expected the end of the text, found '}'"),
    ("", "the text is empty"),
    (broken("return %2, %z_1", "return %2, %x", LOOP), "is defined outside, and a region sees its own values only"),
    (broken("dense<3 :", "dense<3000000000 :", LOOP), "an element is out of range"),
    (broken("dense<3 : i32[]>", "dense<3 : i32[99999,99999]>", LOOP), "too many for a constant"),
    (broken("value=dense<3 : i32[]>", "", LOOP), "constant needs the attribute value"),
]


@pytest.mark.parametrize(("text", "message"), ERRORS)
def test_errors_say_what_and_where(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_program(text, OPS, "a.gspmd")
    shown = str(caught.value)
    assert message in shown
    assert shown.startswith("a.gspmd:")


def test_the_caret_stands_below_the_mistake() -> None:
    with pytest.raises(ParseError) as caught:
        parse_program(broken("tanh(%h)", "tanh(%g)"), OPS, "a.gspmd")
    head, source, caret = str(caught.value).split("\n")[:3]
    assert head.startswith("a.gspmd:4:13:")
    assert source[caret.index("^") :].startswith("%g)")


def test_a_long_line_is_shown_in_part() -> None:
    text = broken("dense<3 : i32[]>", 'dense<"0x' + "00" * 5000 + '" : i32[]>', LOOP)
    with pytest.raises(ParseError, match="5000 bytes given, 4 needed") as caught:
        parse_program(text, OPS)
    assert max(map(len, str(caught.value).split("\n"))) < 200


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(ParseError, match="byte 1 is not UTF-8"):
        parse_bytes(b"f\xff", OPS, "a.gspmd")
    assert same_structure(parse_bytes(LOOP.encode(), OPS), parse_program(LOOP, OPS))


def parses_or_fails_well(text: str) -> None:
    try:
        program = parse_program(text, OPS)
    except ParseError as error:
        assert str(error).startswith("<text>:")
        return
    printed = print_program(program)
    assert print_program(parse_program(printed, OPS)) == printed


@given(st.binary(max_size=200))
def test_random_bytes_never_crash(data: bytes) -> None:
    with pytest.raises(ParseError):
        parse_bytes(data, OPS)


SEEDS = [*TEXTS, *(print_program(parse_example(text, OPS)) for _, text in EXAMPLES)]
SCRAP = st.sampled_from(
    [*'%()[]{}@:=,/"?~<>\n\x00é', "none", "-1", "9" * 40, "9" * 6000, "f32[", "dense<", "0x", "nan"]
)
EDIT = st.tuples(st.floats(0, 1), st.integers(0, 8), SCRAP | st.just("") | st.text(max_size=3))


@given(st.sampled_from(SEEDS), st.lists(EDIT, min_size=1, max_size=4))
@settings(max_examples=1500)
@example(SHARDED, [(0.0, 0, "[" * 3000)])
@example(LOOP, [(0.0, 0, "func @f() -> () {" + "%0 = while() () {" * 500)])
def test_mutated_programs_never_crash(text: str, edits: list[tuple[float, int, str]]) -> None:
    for place, drop, put in edits:
        at = int(place * len(text))
        text = text[:at] + put + text[at + drop :]
    parses_or_fails_well(text)


def test_values_are_printed_even_where_the_program_is_broken() -> None:
    program = parse_program(LOCAL, OPS)
    stray = replace(program.body.nodes[0], operands=(Value(TensorType("f32", (4,)), "gone"),))
    broken_program = replace(program, body=replace(program.body, nodes=(stray,)))
    assert "%0 = tanh(%gone)" in print_program(broken_program)
