"""Propagation by hand: the patterns of the paper, open and closed dimensions, who wins, what does not fit."""

from __future__ import annotations

import random

import pytest

from gspmd.ir.attrs import Attrs
from gspmd.ir.errors import ShardingError, UsageError
from gspmd.ir.graph import Program, Region
from gspmd.ir.mesh import Mesh
from gspmd.ir.sharding import Sharding
from gspmd.ir.types import TensorType
from gspmd.propagation import propagate
from tests.propagation.toy import APPLY, CROP, LOOP, CropAttrs, Toy, named, shuffled

MESH = Mesh({"data": 2, "model": 4})


def result(toy: Toy, *values) -> dict[str, str]:
    """The shardings of all named values, the same for two other orders of the ops."""
    program = toy.done(*values)
    found = named(propagate(program)[0])
    for seed in range(2):
        assert named(propagate(shuffled(program, random.Random(seed)))[0]) == found
    return found


def test_mlp_data_and_model_parallel() -> None:
    toy = Toy(MESH)
    x, w, v = toy.param(64, 32, at="[data, _]"), toy.param(32, 48, at="[_, model]"), toy.param(48, 32, name="v")
    h = toy.op("mn->mn", toy.op("mk,kn->mn", x, w), name="h")
    y = toy.op("mk,kn->mn", h, v, name="y")
    assert result(toy, y) == {"v": "[model, _]", "h": "[data, model]", "y": "[data, _]"}


def test_gradient_dots_take_their_split_from_activations_and_weights() -> None:
    toy = Toy(MESH)
    x, w = toy.param(64, 32, at="[data, _]"), toy.param(32, 48, at="[_, model]")
    y = toy.op("mk,kn->mn", x, w, name="y")
    dy = toy.op("mn,mn->mn", y, y, name="dy")
    dw, dx = toy.op("mk,mn->kn", x, dy, name="dw"), toy.op("mn,kn->mk", dy, w, name="dx")
    new = toy.op("kn,kn->kn", w, dw, name="new")
    assert result(toy, dx, new) == {
        "y": "[data, model]",
        "dy": "[data, model]",
        "dw": "[_, model]",
        "dx": "[data, _]",
        "new": "[_, model]",
    }


def test_attention_splits_heads_through_the_reshapes() -> None:
    toy = Toy(MESH)
    x, w, o = toy.param(8, 6, 32, at="[data, _, _]"), toy.param(32, 32, at="[_, model]"), toy.param(32, 32, name="o")
    q = toy.op("bs(nd)->bsnd", toy.op("bsm,mk->bsk", x, w, name="flat"), n=8, d=4, name="q")
    scores = toy.op("bsnd,btnd->bnst", q, q, name="scores")
    out = toy.op("bnst,btnd->bsnd", scores, q)
    merged = toy.op("bsnd->bs(nd)", out, name="merged")
    y = toy.op("bsk,km->bsm", merged, o, name="y")
    assert result(toy, y) == {
        "flat": "[data, _, model]",
        "q": "[data, _, model, _]",
        "scores": "[data, model, _, _]",
        "merged": "[data, _, model]",
        "o": "[model, _]",
        "y": "[data, _, _]",
    }


def test_more_axes_than_the_major_factor_has_spill_to_the_next() -> None:
    toy = Toy(Mesh({"x": 8}))
    y = toy.op("(ab)->ab", toy.param(32, at="[x]"), a=4, b=8, name="y")
    z = toy.op("ab->(ab)", y, name="z")
    assert result(toy, z) == {"y": "[x:(1)4, x:(4)2]", "z": "[x]"}


def test_a_minor_factor_passes_only_if_the_major_ones_are_used_up() -> None:
    toy = Toy(MESH)
    y = toy.op("ab->(ab)", toy.param(4, 8, at="[_, model]"), name="y")
    z = toy.op("ab->(ab)", toy.param(4, 8, at="[model, data]"), name="z")
    w = toy.op("ab->(ab)", toy.param(6, 8, at="[model, _]"), name="w")  # 6 over 4 is ragged: no multiple of rows
    assert result(toy, y, z, w) == {"y": "[_]", "z": "[model+data]", "w": "[_]"}


def test_whole_factors_and_what_is_minor_to_them_carry_nothing() -> None:
    toy = Toy(MESH)
    y = toy.op("M->M", toy.param(8, at="[data]"), name="y")
    z = toy.op("aBc->(aBc)", toy.param(2, 4, 8, at="[data, _, model]"), name="z")
    assert result(toy, y, z) == {"y": "[_]", "z": "[data]"}


def test_a_leading_factor_takes_its_piece_of_axes_that_reach_into_what_stays_whole() -> None:
    toy = Toy(MESH)
    y = toy.op("(aB)->(aC)", toy.param(12, at="[model]"), a=2, B=6, C=5, name="y")
    assert result(toy, y) == {"y": "[model:(1)2]"}


def test_axes_on_a_whole_factor_go_to_an_unsplit_dimension_else_to_the_largest() -> None:
    toy = Toy(MESH)
    y = toy.op("Mnk->Mnk", toy.param(8, 4, 16, at="[data, _, _]"), name="y")
    free = toy.op("Mnk->Mnk", toy.param(8, 4, 16, at="[data, _, model]"), name="free")
    joined = toy.op("Mn->Mn", toy.param(8, 8, at="[data, model]"), name="joined")
    before = toy.param(8, 4, name="before")
    back = toy.shard(toy.op("Mn->Mn", before, name="after"), "[data, _]")
    assert result(toy, y, free, joined, back) == {
        "y": "[_, _, data]",
        "free": "[_, data, model]",
        "joined": "[_, model+data]",
        "before": "[_, data]",
        "after": "[data, _]",
    }


def test_a_bias_does_not_decide_how_activations_are_split() -> None:
    """Were broadcasts heard early, the bias at hand would win against the activations, which come later."""
    toy = Toy(MESH)
    x, w, bias = toy.param(16, 32, at="[data, _]"), toy.param(32, 32), toy.param(32, at="[data]")
    wide = toy.op("n->mn", bias, m=16, name="wide")
    y = toy.op("mn,mn->mn", toy.op("mk,kn->mn", x, w), wide, name="y")
    assert result(toy, y) == {"wide": "[data, _]", "y": "[data, _]"}


def test_indices_decide_how_what_is_looked_up_is_split_before_weights_do() -> None:
    """The result of a lookup is made of table and indices: these are no bias."""
    toy = Toy(MESH)
    table, tokens, w = toy.param(64, 16), toy.param(8, 32, at="[data, _]"), toy.param(16, 16, at="[data, model]")
    embedded = toy.op("Vd,bs->bsd", table, tokens, name="embedded")
    y = toy.op("bsd,df->bsf", embedded, w, name="y")
    assert result(toy, y) == {"embedded": "[data, _, _]", "y": "[data, _, model]"}


def test_rows_of_indices_go_before_features_of_a_table_however_large_it_is() -> None:
    toy = Toy(MESH)
    table, tokens = toy.param(1024, 16, at="[_, data]"), toy.param(8, 32, at="[data, _]")
    assert result(toy, toy.op("Vd,bs->bsd", table, tokens, name="embedded")) == {"embedded": "[data, _, _]"}


def test_what_a_small_tensor_adds_to_an_axis_of_a_larger_one_waits_for_the_larger_one() -> None:
    toy = Toy(MESH)
    large, small = toy.param(64, 64, 8, at="[data, model, _]"), toy.param(64, at="[model+data]")
    assert result(toy, toy.op("mnr,n->mn", large, small, name="y")) == {"y": "[data, model]"}


def test_residual_keeps_activations_against_a_weight_split() -> None:
    toy = Toy(MESH)
    x, w = toy.param(16, 32, at="[data, _]"), toy.param(32, 32, at="[_, data]")
    y = toy.op("mk,kn->mn", x, w, name="y")
    z = toy.op("mn,mn->mn", x, y, name="z")
    assert result(toy, z) == {"y": "[data, _]", "z": "[data, _]"}


def test_transpose_broadcast_and_reduce() -> None:
    toy = Toy(MESH)
    x = toy.param(16, 32, at="[data, model]")
    t, r = toy.op("mn->nm", x, name="t"), toy.op("mn->m", x, name="r")
    b = toy.op("m->mk", r, k=8, name="b")
    assert result(toy, t, b) == {"t": "[model, data]", "r": "[data]", "b": "[data, _]"}


def test_a_result_tells_its_broadcast_or_reduced_operand_at_last() -> None:
    toy = Toy(MESH)
    bias, x = toy.param(32, name="bias"), toy.param(16, 32, name="x")
    wide = toy.op("n->mn", bias, m=16, name="wide")
    s = toy.op("mn->m", x, name="s")
    a, b = toy.shard(wide, "[data, model]"), toy.shard(s, "[data]")
    assert result(toy, a, b) == {"bias": "[model]", "x": "[data, _]", "wide": "[data, model]", "s": "[data]"}


def test_closed_dimensions_are_exact_and_open_ones_may_be_refined() -> None:
    toy = Toy(Mesh({"a": 2, "b": 2, "c": 2}))
    x = toy.param(16, 16, at="[a+b, c]")
    closed = toy.shard(x, "[a, _]", name="closed")
    open_ = toy.shard(x, "[a?, _?]", name="open")
    half = toy.shard(x, "[a?, _]", name="half")
    never = toy.shard(x, "[_?, _?]^(b)", name="never")
    after = toy.op("mn->mn", half, name="after")
    assert result(toy, closed, open_, never, after) == {
        "closed": "[a, _]",
        "open": "[a+b, c]",
        "half": "[a+b, _]",
        "never": "[a, c]",
        "after": "[a+b, _]",
    }


def test_what_else_an_annotation_says_is_kept_and_keeps_axes_away() -> None:
    toy = Toy(MESH)
    x = toy.param(16, 16, at="[data, model]")
    partial = toy.shard(x, "[_?, _?]~add(data)", name="partial")
    manual = toy.shard(x, "[_?, _?]!(model)", name="manual")
    chunk = toy.shard(x, "[data/9?, _?]", name="chunk")  # shards of a size of its own: not split further
    assert result(toy, partial, manual, chunk) == {
        "partial": "[_, model]~add(data)",
        "manual": "[data, _]!(model)",
        "chunk": "[data/9, model]",
    }


def test_two_annotations_that_clash_are_both_kept() -> None:
    toy = Toy(MESH)
    x = toy.shard(toy.param(16, 16), "[data, _]", name="x")
    y = toy.op("mn->mn", x, name="y")
    z = toy.shard(y, "[_, data]", name="z")
    found = result(toy, z)
    assert (found["x"], found["z"]) == ("[data, _]", "[_, data]")
    assert found["y"] in ("[data, _]", "[_, data]")


def test_a_closed_annotation_names_the_value_that_it_is_put_on() -> None:
    """The op behind a value works as the user says of it, against what its operands say; one that is open waits."""
    toy = Toy(MESH)
    x = toy.param(16, 16, at="[model, _]")
    y = toy.op("mn->mn", x, name="y")
    z = toy.op("mn->mn", x, name="z")
    assert result(toy, toy.shard(y, "[_, model]"), toy.shard(z, "[_?, model?]")) == {
        "y": "[_, model]",
        "z": "[model, _]",
    }


def test_an_axis_splits_one_dimension_of_a_tensor_only() -> None:
    toy = Toy(MESH)
    x, y = toy.param(16, 8, at="[data, _]"), toy.param(8, 16, at="[_, data]")
    assert result(toy, toy.op("mk,kn->mn", x, y, name="z"))["z"] == "[data, _]"


def test_tiny_and_ragged_dimensions() -> None:
    toy = Toy(Mesh({"a": 2, "b": 4}))
    cut = CROP.emit(toy.builder, (toy.param(16, 8, at="[b, _]"),), CropAttrs(3), name="cut")[0]
    keep = CROP.emit(toy.builder, (toy.param(16, 8, at="[b, _]"),), CropAttrs(5), name="keep")[0]
    one = CROP.emit(toy.builder, (toy.param(16, 8, at="[a, _]"),), CropAttrs(1), name="one")[0]
    whole = toy.param(16, 8, name="whole")
    part = toy.shard(CROP.emit(toy.builder, (whole,), CropAttrs(4))[0], "[b, _]")
    assert result(toy, cut, keep, one, part) == {"cut": "[_, _]", "keep": "[b, _]", "one": "[_, _]", "whole": "[b, _]"}


def test_a_ragged_split_grows_only_where_shards_nest() -> None:
    """10 over 2 has shards of 5: 2*2 parts have 3 and do not nest; 6 over 2 has 3, 2*3 parts have 1 and do."""
    toy = Toy(Mesh({"a": 2, "b": 2, "c": 3}))
    ten = toy.shard(toy.param(10, at="[a+b]"), "[a?]", name="ten")
    six = toy.shard(toy.param(6, at="[a+c]"), "[a?]", name="six")
    assert result(toy, ten, six) == {"ten": "[a]", "six": "[a+c]"}


def test_loop_carries_are_one_value() -> None:
    for at_body in (False, True):
        toy, body = Toy(MESH), Toy(MESH)
        x = toy.param(16, 32, at=None if at_body else "[data, _]", name="x")
        w = toy.param(32, 32, at="[_, model]", name="w")
        c, u = body.param(16, 32, name="c"), body.param(32, 32, name="u")
        h = body.op("mk,kn->mn", c, u, name="h")
        if at_body:
            h = body.shard(h, "[data, _]")
        out = body.op("mn,kn->mk", h, u, name="out")
        region = body.builder.region((out, u))
        y, _ = LOOP.emit(toy.builder, (x, w), Attrs(), (region,))
        z = toy.op("mn->mn", y, name="z")
        found = named(propagate(toy.done(z))[0])
        assert {found[k] for k in ("x", "c", "out", "z")} == {"[data, _]"}
        assert found["u"] == "[_, model]"
        assert found["h"] == "[data, model]"


def test_element_regions_are_left_alone() -> None:
    toy, inner = Toy(MESH), Toy(MESH)
    a, b = inner.param(), inner.param()
    region = inner.builder.region((inner.op(",->", a, b),))
    x = toy.param(16, 16, at="[data, _]")
    (y,) = APPLY.emit(toy.builder, (x,), Attrs(), (region,), name="y")
    program, _ = propagate(toy.done(y))
    node = program.body.nodes[0]
    assert node.results[0].type.sharding == Sharding.of(MESH, "data", None)
    assert {v.type.sharding for v in node.regions[0].params} == {Sharding.replicate(MESH, 0)}


def test_a_program_without_a_mesh_is_for_one_device() -> None:
    toy = Toy(Mesh({}))
    y = toy.op("mn->nm", toy.param(4, 6))
    program = Program.of("p", toy.builder.region((y,)), None)
    done, _ = propagate(program)
    assert done.mesh == Mesh({}) and done.stage == "propagated"
    assert done.outputs == (TensorType("f32", (6, 4), Sharding.replicate(Mesh({}), 2)),)


def test_errors() -> None:
    toy = Toy(MESH)
    other = Sharding.of(Mesh({"data": 2}), "data")
    x = toy.builder.param(TensorType("f32", (4,), other))
    with pytest.raises(ShardingError, match="annotated on the mesh"):
        propagate(toy.done(x))
    done, _ = propagate(Program.of("p", Region((), (), ()), MESH))
    with pytest.raises(UsageError, match="at propagated"):
        propagate(done)


def test_more_parts_win_and_the_other_stands_in_where_axes_are_taken() -> None:
    """Two operands that want opposite things: each dimension gets something."""
    toy = Toy(MESH)
    x, y = toy.param(64, 64, at="[data, _]"), toy.param(64, 64, at="[model, _]")
    toy.op("mn,mn->mn", x, y, name="more")
    u, v = toy.param(64, 64, at="[data, model]"), toy.param(64, 64, at="[model, data]")
    z = toy.op("mn,mn->mn", u, v, name="both")
    assert result(toy, z) == {"more": "[model, _]", "both": "[data, model]"}


def test_a_crop_that_moves_cells_far_says_little() -> None:
    """What a later annotation says of half a tensor is heard before the split of the whole."""
    toy = Toy(MESH)
    half = CROP.emit(toy.builder, (toy.param(64, 32, at="[data, _]"),), CropAttrs(32), loc=toy.loc(), name="half")[0]
    most = CROP.emit(toy.builder, (toy.param(64, 32, at="[data, _]"),), CropAttrs(62), loc=toy.loc(), name="most")[0]
    h, m = (toy.shard(toy.op("mn->mn", x), "[_, data]") for x in (half, most))
    assert result(toy, h, m) == {"half": "[_, data]", "most": "[data, _]"}
