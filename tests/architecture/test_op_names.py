"""No pass knows an op by its name: outside ops, interop and the front end ops are known by their rules and traits."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.checks import op_class_findings, op_name_findings, trait_findings
from tests.architecture.source import ROOT, modules

# Op names that are also ordinary words, with what else they mean. Compared to an op's name they are found all the same.
WORDS = {
    "add": "the monoid of a sum",
    "complex": "a kind of dtype",
    "iota": "a form of XLA's sharding text",
    "xor": "the monoid of a parity",
    "and": "the monoid of a conjunction",
    "or": "the monoid of a disjunction",
    "reduce": "a factor kind",
    "select": "a factor kind",
}
MOST_TRAITS = 12
# Modules that know one op by its attributes, because it was made for them (docs/decisions/0010).
MADE_FOR = {
    "optimizer.mirrors": "joins pairs of affine permutes",
    "optimizer.rings": "joins pairs of affine permutes",
    "runtime.fusion.run": "compiles what the scheduler fused",
}


def op_set() -> dict[str, Any]:
    """The op set, name by name."""
    return dict(importlib.import_module("gspmd.ops").OPS)


def test_no_pass_names_an_op() -> None:
    assert [str(f) for f in op_name_findings(modules(), op_set().keys(), WORDS)] == []


def test_the_words_are_op_names() -> None:
    assert set(WORDS) <= set(op_set())


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("'''dot_general'''", True),
        ("x = f'dot_general {1}'", True),
        ("__all__ = ['dot_general']", True),
        ("kind = 'add'", True),
        ("x = node.op.name", True),
        ("from gspmd.ops import dot_general\ndot_general(builder, x, y)", True),
        ("from gspmd.ops import ResultShape\nif attrs is ResultShape: pass", True),
        ("kind = 'dot_general'", False),
        ("table = {'dot_general': 1}", False),
        ("if node.op.name == kind: pass", False),
        ("if 'add' == op.name: pass", False),
        ("if first(nodes).op.name in table: pass", False),
        ("if nodes[0].op.name != kind: pass", False),
        ("if node.op_name.startswith('all_'): pass", False),
        ("match node.op.name:\n    case 'add': pass", False),
        ("from gspmd.ops import DOT_GENERAL\nif node.op is DOT_GENERAL: pass", False),
        ("from gspmd.ops import DOT_GENERAL as D\nif node.op in (D, 1): pass", False),
        ("from gspmd import ops\nif node.op == ops.dot.dot_general: pass", False),
        ("from gspmd.ops import OPS\nif node.op is OPS[kind]: pass", False),
        ("from gspmd import ops\nmatch node.op:\n    case ops.DOT_GENERAL: pass", False),
    ],
)
def test_the_check_tells_right_from_wrong(tmp_path: Path, text: str, allowed: bool) -> None:
    for part, expected in (("optimizer", allowed), ("interop", True)):
        path = tmp_path / part / "gspmd" / part / "a.py"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        found = list(op_name_findings(modules(tmp_path / part / "gspmd"), {"dot_general", "add"}, {"add"}))
        assert (not found) == expected


def test_no_pass_knows_an_op_by_its_class() -> None:
    assert [str(f) for f in op_class_findings(modules(), op_set().keys(), MADE_FOR)] == []
    found = {str(f).split(":")[0] for f in op_class_findings(modules(), op_set().keys(), ())}
    assert len(found) == len(MADE_FOR), "an exception that nobody needs"


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("from gspmd.ir.attrs import Attrs\nif isinstance(x, Attrs): pass", True),
        ("from gspmd.ops.dot import DotAttrs\nassert isinstance(x, DotAttrs)", True),
        ("from gspmd.ops.dot import DotAttrs\nx = DotAttrs()", True),
        ("from gspmd.ops import DOT_GENERAL\ntable = {1: DOT_GENERAL}", True),
        ("from gspmd.ops.dot import DotAttrs\nif isinstance(x, DotAttrs): pass", False),
        ("from gspmd.ops.dot import DotAttrs\nif not isinstance(x, (int, DotAttrs)): pass", False),
        ("from gspmd.ops import dot\nif isinstance(x, dot.DotAttrs): pass", False),
        ("from gspmd.ops import DOT_GENERAL\ntable = {DOT_GENERAL: 1}", False),
        ("from gspmd.ops import dot as d\ntable = {d.DOT_GENERAL: 1}", False),
    ],
)
def test_the_class_check_tells_right_from_wrong(tmp_path: Path, text: str, allowed: bool) -> None:
    path = tmp_path / "gspmd" / "optimizer" / "a.py"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    tree = modules(tmp_path / "gspmd")
    assert (not list(op_class_findings(tree, {"dot_general"}, ()))) == allowed
    assert not list(op_class_findings(tree, {"dot_general"}, {"optimizer.a"}))


def test_an_empty_tree_has_no_findings(tmp_path: Path) -> None:
    assert list(op_name_findings(modules(tmp_path / "gspmd"), {"add"}, ())) == []


def test_traits_are_few_and_listed() -> None:
    op_set()
    traits = importlib.import_module("gspmd.ir.opdef").Trait
    assert len(traits) <= MOST_TRAITS
    assert [str(f) for f in trait_findings(modules(), {t.name for t in traits}, "Trait")] == []


def test_each_trait_is_borne_by_two_ops_or_explained() -> None:
    ops = op_set().values()
    records = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "docs" / "decisions").glob("0*.md"))
    for trait in importlib.import_module("gspmd.ir.opdef").Trait:
        bearers = [op for op in ops if op.has(trait)]
        assert len(bearers) >= 2 or f"Trait.{trait.name}" in records, f"{trait!r} is borne by {bearers}"


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("op.has(Trait.MOVES)", True),
        ("op.has(Trait.SECRET)", False),
        ("if 'moves' in op.traits: pass", False),
    ],
)
def test_the_trait_check_tells_right_from_wrong(tmp_path: Path, text: str, allowed: bool) -> None:
    (tmp_path / "gspmd").mkdir()
    (tmp_path / "gspmd" / "a.py").write_text(text)
    assert (not list(trait_findings(modules(tmp_path / "gspmd"), {"MOVES"}, "Trait"))) == allowed
