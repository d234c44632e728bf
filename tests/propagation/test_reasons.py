"""The reasons: every split is traced to an annotation, what lost is named, and it all prints."""

from __future__ import annotations

import pytest

from gspmd.inspect.explain import explain
from gspmd.ir.attrs import Attrs
from gspmd.ir.axes import canonical, contains
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import Program
from gspmd.ir.mesh import Mesh
from gspmd.ir.printer import value_names
from gspmd.propagation import propagate
from tests.propagation.toy import LOOP, Toy, random_program
from tests.propagation.values import all_values

MESH = Mesh({"data": 2, "model": 4})


def mlp() -> Program:
    toy = Toy(MESH)
    x, w = toy.param(64, 32, at="[data, _]", name="x"), toy.param(32, 48, at="[_, model]", name="w")
    h = toy.op("mk,kn->mn", x, w, name="h")
    y = toy.op("mn->nm", h, name="y")
    z = toy.op("mn,mn->mn", toy.op("mn->nm", y, name="back"), h, name="z")
    return toy.done(z)


def test_a_chain_is_the_path_of_ops_back_to_the_annotation() -> None:
    program, reasons = propagate(mlp())
    found = explain(program, reasons, "%y")
    assert found.annotation is None
    assert [(o.dim, o.axes, o.annotated, o.annotation) for o in found.origins] == [
        (0, "model", "w", "[_, model]"),
        (1, "data", "x", "[data, _]"),
    ]
    assert [(h.value, h.source, h.dim, h.source_dim, h.level) for h in found.origins[0].hops] == [
        ("y", "h", 0, 1, 0),
        ("h", "w", 1, 1, 1),
    ]
    assert not found.losses


def test_the_text() -> None:
    program, reasons = propagate(mlp())
    text = explain(program, reasons, "h").text()
    assert text == (
        "%h: f32[64@data, 48@model]      toy.py:1\n"
        "  dim 0: data\n"
        "    %h dim 0 <- %x dim 0      toy_einsum at toy.py:1 (level 1, batch 0)\n"
        "    %x is annotated [data, _]\n"
        "  dim 1: model\n"
        "    %h dim 1 <- %w dim 1      toy_einsum at toy.py:1 (level 1, batch 0)\n"
        "    %w is annotated [_, model]"
    )


def test_an_annotation_explains_itself_with_its_line() -> None:
    toy = Toy(MESH)
    s = toy.shard(toy.param(16, 16), "[data, _?]", name="s")
    program, reasons = propagate(toy.done(s))
    assert explain(program, reasons, "s").text() == (
        "%s: f32[16@data, 16]      toy.py:1\n"
        "  annotated [data, _?]\n"
        "  dim 0: data\n"
        "    %s is annotated [data, _?] at toy.py:1"
    )


def test_what_lost_is_named_with_the_reason() -> None:
    toy = Toy(MESH)
    x, y = toy.param(16, 8, at="[data, _]", name="x"), toy.param(8, 16, at="[_, data]", name="y")
    z = toy.op("mk,kn->mn", x, y, name="z")
    late = toy.op("mn,mk->mn", z, toy.param(16, 4, at="[model, _]", name="a"), name="late")
    closed = toy.shard(late, "[_, _]", name="closed")
    small = toy.op("mn->mn", toy.shard(toy.param(5, 8), "[_, _?]^(model)", name="small"))
    near = toy.shard(small, "[_, model]", name="near")
    odd = toy.op("(ab)->ab", toy.param(6, at="[data]", name="six"), a=3, b=2, name="odd")
    program, reasons = propagate(toy.done(closed, near, odd))
    names = ("z", "late", "closed", "small", "odd")
    why = {n: {loss.source: loss.why for loss in explain(program, reasons, n).losses} for n in names}
    assert why["z"]["y"] == "data splits dim 0 of this tensor already"
    assert why["late"] == {"a": "it is split over data already, which came first"}
    assert why["closed"] == {"late": "the annotation closes this dimension"}
    assert list(why["small"].values()) == ["the annotation keeps the tensor replicated over model"]
    assert why["odd"] == {"six": "its shards are no multiple of what the op leaves together"}
    assert (
        "    dim 1: data from %y dim 1 by toy_einsum at toy.py:1: data splits" in explain(program, reasons, "z").text()
    )


def test_a_value_that_nothing_reaches_says_so() -> None:
    toy = Toy(MESH)
    program, reasons = propagate(toy.done(toy.param(4, name="x")))
    assert "no neighbour is split" in explain(program, reasons, "x").text()


def test_values_in_loops_are_explained_through_the_carry() -> None:
    toy, body = Toy(MESH), Toy(MESH)
    x, c = toy.param(16, 8, at="[data, _]", name="x"), body.param(16, 8, name="c")
    region = body.builder.region((body.op("mn->mn", c, name="inside"),))
    (y,) = LOOP.emit(toy.builder, (x,), Attrs(), (region,), loc=toy.loc(), name="y")
    program, reasons = propagate(toy.done(y))
    (origin,) = explain(program, reasons, "inside").origins
    assert origin.annotated == "x"
    assert {h.op for h in origin.hops} <= {"toy_loop", "toy_einsum"}


def test_a_long_chain_is_found_whole_and_printed_short() -> None:
    toy = Toy(MESH)
    x = toy.param(16, at="[data]", name="x")
    for _ in range(3000):
        x = toy.op("m->m", x)
    program, reasons = propagate(toy.done(toy.op("m->m", x, name="last")))
    found = explain(program, reasons, "last")
    assert len(found.origins[0].hops) == 3001
    assert "... 2989 more ops ..." in found.text() and len(found.text().splitlines()) == 16


def test_an_unknown_name_is_a_usage_error_with_close_matches() -> None:
    program, reasons = propagate(mlp())
    with pytest.raises(UsageError, match=r"no value %bakc") as caught:
        explain(program, reasons, "%bakc")
    assert "%back" in caught.value.fix


@pytest.mark.parametrize("seed", range(40))
def test_every_split_is_traced_to_an_annotation_that_has_the_axis(seed: int) -> None:
    program, reasons = propagate(random_program(seed))
    for value in all_values(program.body):
        for dim, d in enumerate(reasons.sharding(value).dims):
            chains = reasons.chains(value, dim)
            assert canonical(c.axis for c in chains) == d.axes
            for c in chains:
                at = c.events[-1].source_dim if c.events else dim
                annotation = reasons.annotation(c.annotated)
                assert annotation is not None and contains(annotation.dims[at].axes, c.axis)
                batches = [e.batch for e in c.events]
                assert batches == sorted(set(batches), reverse=True)


def test_every_value_of_random_programs_can_be_explained() -> None:
    for seed in range(12):
        program, reasons = propagate(random_program(seed))
        for name in value_names(program).values():
            assert explain(program, reasons, name).text().startswith(f"%{name}: ")
