"""Annotations in all their forms: XLA's strings, Shardy's attributes and ops."""

from __future__ import annotations

import pytest

import gspmd
from gspmd.interop.import_stablehlo import import_stablehlo
from gspmd.ir.errors import ShardingError, UsageError
from gspmd.ir.graph import Program
from gspmd.ir.mesh import Mesh
from gspmd.ir.verify import verify
from gspmd.ops import OPS

T = "tensor<8x8xf32>"
MESH = 'sdy.mesh @mesh = <["a"=2, "b"=4]>\n'


def program(body: str, argument: str = "", result: str = "", before: str = MESH, mesh: Mesh | None = None) -> Program:
    text = f"{before}func.func @main(%x: {T} {argument}) -> ({T} {result}) {{\n{body}\n}}\n"
    found = import_stablehlo(text, mesh=mesh)
    verify(found, OPS)
    return found


def shardings(found: Program) -> list[str]:
    """Those of the annotated results of ops."""
    values = [v for n in found.body.nodes for v in n.results]
    return [v.type.sharding.text() for v in values if v.type.sharding is not None]


SDY = [
    ('<@mesh, [{"a"}, {}]>', "[a, _]"),
    ('<@mesh, [{"b", "a"}, {?}]>', "[b+a, _?]"),
    ('<@mesh, [{"a", ?}, {"b":(2)2}]>', "[a?, b:(2)2]"),
    ('<@mesh, [{?}, {}], replicated={"b"}>', "[_?, _]^(b)"),
    ('<@mesh, [{"b":(1)2}, {"a"}], replicated={"b":(2)2}>', "[b:(1)2, a]^(b:(2)2)"),
]


@pytest.mark.parametrize(("attribute", "wanted"), SDY)
def test_shardings_of_shardy(attribute: str, wanted: str) -> None:
    held = f"{{sdy.sharding = #sdy.sharding{attribute}}}"
    found = program(f"return %x : {T}", held)
    assert found.inputs[0].sharding is not None and found.inputs[0].sharding.text() == wanted
    assert found.mesh == Mesh({"a": 2, "b": 4})
    assert shardings(program(f"return %x : {T}", "", held)) == [wanted]
    for op in ("sharding_constraint", "reshard"):
        assert shardings(program(f"%0 = sdy.{op} %x {attribute} : {T}\nreturn %0 : {T}")) == [wanted]
    per_value = f"{{sdy.sharding = #sdy.sharding_per_value<[{attribute}]>}}"
    assert shardings(program(f"%0 = stablehlo.tanh %x {per_value} : {T}\nreturn %0 : {T}")) == [wanted]


HLO = [
    ("{devices=[2,4]<=[8]}", "[a, b]"),
    ("{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}", "[b, _]"),
    ("{replicated}", "[_, _]"),
    ("{devices=[1,8]0,1,2,3,4,5,6,7}", "[_, a+b]"),
]


@pytest.mark.parametrize(("text", "wanted"), HLO)
def test_shardings_of_xla(text: str, wanted: str) -> None:
    mesh = Mesh({"a": 2, "b": 4})
    held = f'{{mhlo.sharding = "{text}"}}'
    found = program(f"return %x : {T}", held, "", "", mesh)
    assert found.inputs[0].sharding is not None and found.inputs[0].sharding.text() == wanted
    assert shardings(program(f"return %x : {T}", "", held, "", mesh)) == [wanted]
    assert shardings(program(f"%0 = stablehlo.tanh %x {held} : {T}\nreturn %0 : {T}", "", "", "", mesh)) == [wanted]
    call = f'stablehlo.custom_call @Sharding(%x) {{mhlo.sharding = "{text}", backend_config = "unspecified_dims=[0]"}}'
    opened = shardings(program(f"%0 = {call} : ({T}) -> {T}\nreturn %0 : {T}", "", "", "", mesh))
    assert opened == [wanted.replace(",", "?,", 1)]


def test_the_mesh_of_xlas_strings_is_their_refinement() -> None:
    held = '{mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}'
    body = f"%0 = stablehlo.tanh %x {held} : {T}\nreturn %0 : {T}"
    found = program(body, '{mhlo.sharding = "{devices=[4,2]<=[8]}"}', "", "")
    assert found.mesh == Mesh({"a0": 2, "a1": 2, "a2": 2})


def test_a_device_order_is_kept() -> None:
    mesh = 'sdy.mesh @mesh = <["a"=4], device_ids=[0, 2, 1, 3]>\n'
    found = program(f"return %x : {T}", '{sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}', "", mesh)
    assert found.mesh is not None and found.mesh.device_order == (0, 2, 1, 3)


def test_named_computations_and_meshes_without_axes() -> None:
    body = f"""%0 = sdy.named_computation<"f">(%x) in_shardings=[<@mesh, [{{"a"}}, {{}}]>]
          out_shardings=[<@mesh, [{{}}, {{"b"}}]>] (%y: {T}) {{
            %1 = stablehlo.tanh %y : {T}
            sdy.return %1 : {T}
          }} : ({T}) -> {T}
        %2 = sdy.sharding_constraint %0 <@empty, [{{}}, {{}}]> : {T}
        return %2 : {T}"""
    assert shardings(program(body, before=f"{MESH}sdy.mesh @empty = <[]>\n")) == ["[a, _]", "[_, b]"]


def test_priorities_are_kept() -> None:
    assert shardings(
        program(f'%0 = sdy.sharding_constraint %x <@mesh, [{{"a"}}p1, {{?}}p2]> : {T}\nreturn %0 : {T}')
    ) == ["[a#1, _?#2]"]


@pytest.mark.parametrize(("direction", "expected"), [("NONE", "[_, _]"), ("FORWARD", "[a, _]"), ("BACKWARD", "[_, _]")])
def test_barriers_stop_what_they_say(direction: str, expected: str) -> None:
    body = f"""%0 = sdy.propagation_barrier %x allowed_direction={direction} : {T}
        %1 = stablehlo.tanh %0 : {T}
        return %1 : {T}"""
    c = gspmd.compile(gspmd.Module(program(body, '{sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}')))
    (result,) = c.stage("propagated").output_types
    assert result.sharding is not None and result.sharding.text() == expected


def test_a_group_is_sharded_alike_from_there_on() -> None:
    body = f"""%0 = sdy.sharding_constraint %x <@mesh, [{{"a"}}, {{}}]> : {T}
        %1 = stablehlo.constant dense<1.0> : {T}
        sdy.sharding_group %0 group_id = 3 : {T}
        sdy.sharding_group %1 group_id = 3 : {T}
        %2 = stablehlo.negate %1 : {T}
        return %2 : {T}"""
    (result,) = gspmd.compile(gspmd.Module(program(body))).stage("propagated").output_types
    assert result.sharding is not None and result.sharding.text() == "[a, _]"


def test_annotations_on_a_second_mesh_are_said_on_the_first() -> None:
    two = f'{MESH}sdy.mesh @other = <["c"=8]>\n'
    body = f'%0 = sdy.sharding_constraint %x <@other, [{{"c"}}, {{}}]> : {T}\nreturn %0 : {T}'
    assert shardings(program(body, '{sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}', "", two)) == ["[a+b, _]"]
    odd = f'{MESH}sdy.mesh @other = <["c"=8], device_ids=[1,0,2,3,4,5,6,7]>\n'
    with pytest.raises(UsageError, match="no product of pieces"):
        program(body, '{sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}', "", odd)


def test_strings_for_different_numbers_of_devices_are_refused() -> None:
    body = f'%0 = stablehlo.tanh %x {{mhlo.sharding = "{{devices=[4,1]<=[4]}}"}} : {T}\nreturn %0 : {T}'
    with pytest.raises(ShardingError, match=r"assigns 4 devices, but .* assigns 8"):
        program(body, '{mhlo.sharding = "{devices=[4,2]<=[8]}"}', "", "")


# JAX annotates all that it computes where some axes are manual, scalars too.
SCALAR = "sdy.sharding_constraint {} <@mesh, []> : tensor<{}>"


def test_an_annotated_scalar_does_not_hide_what_a_region_combines() -> None:
    body = f"""%c = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = "stablehlo.reduce"(%x, %c) ({{
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %s = stablehlo.add %l, %r : tensor<f32>
        %t = {SCALAR.format("%s", "f32")}
        stablehlo.return %t : tensor<f32>
      }}) {{dimensions = array<i64: 1>}} : ({T}, tensor<f32>) -> tensor<8xf32>
      %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<8xf32>) -> {T}
      return %1 : {T}"""
    (reduce, _) = program(body).body.nodes
    assert getattr(reduce.attrs, "monoid", "") == "add" and not reduce.regions


def test_an_annotated_counter_counts() -> None:
    body = f"""%zero = stablehlo.constant dense<0> : tensor<i32>
      %i = {SCALAR.format("%zero", "i32")}
      %0:2 = stablehlo.while(%n = %i, %y = %x) : tensor<i32>, {T}
      cond {{
        %end = stablehlo.constant dense<5> : tensor<i32>
        %c = stablehlo.compare LT, %n, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %d = {SCALAR.format("%c", "i1")}
        stablehlo.return %d : tensor<i1>
      }} do {{
        %one = stablehlo.constant dense<1> : tensor<i32>
        %more = stablehlo.add %n, %one : tensor<i32>
        %next = {SCALAR.format("%more", "i32")}
        %z = stablehlo.sine %y : {T}
        stablehlo.return %next, %z : tensor<i32>, {T}
      }}
      return %0#1 : {T}"""
    loop = program(body).body.nodes[-1]
    assert getattr(loop.attrs, "trip_count", None) == 5
