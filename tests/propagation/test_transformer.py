"""A real training step: what is sharded how, in any number of layers, and how fast (printed, not asserted)."""

from __future__ import annotations

import time

from gspmd.ir.graph import Program
from gspmd.propagation import propagate
from tests.propagation.toy import text
from tests.propagation.transformer import sharded_step


def outputs(program: Program) -> list[str]:
    """The shardings of the new weights and moments."""
    return [text(v) for v in program.body.results[1:]]


def test_weights_and_moments_follow_their_annotations() -> None:
    program, reasons = propagate(sharded_step(2))
    params = {v.name: text(v) for v in program.body.params}
    column, row, scale = "[_, model]", "[model, _]", "[_]"
    expected: dict[str, str] = dict(
        zip(
            ("wq", "wk", "wv", "wo", "w1", "w2", "s1", "s2"),
            [column] * 3 + [row, column, row, scale, scale],
            strict=True,
        )
    )
    for name, at in params.items():
        assert at == ("[data, _, _]" if name == "x" else expected[name[:2]])
    assert outputs(program) == [at for _ in range(2) for at in expected.values() for _ in range(3)]
    assert not reasons.lost


def test_no_activation_of_the_batch_is_whole() -> None:
    """Every tensor that carries the batch, forward and backward, is split over data (and heads over model)."""
    program, _ = propagate(sharded_step(1))
    for node in program.body.nodes:
        for v in node.results:
            if v.type.shape[:1] == (32,):
                assert text(v).startswith("[data"), (node.op, v.type)
            if v.type.shape == (32, 16, 512, 512):
                assert text(v) == "[data, model, _, _]"


def test_work_is_linear_in_the_number_of_ops() -> None:
    """The questions asked do not grow with the layers, and each op is visited about twice."""
    one, two = (propagate(sharded_step(n))[1] for n in (2, 6))
    assert len(two.states.items) == len(one.states.items)
    assert len(two.levels) < 3.5 * len(one.levels)


def test_speed(capsys) -> None:
    program = sharded_step(32)
    start = time.perf_counter()
    propagate(program)
    with capsys.disabled():
        print(f"\npropagate: {len(program.body.nodes)} ops in {1e3 * (time.perf_counter() - start):.0f} ms")
