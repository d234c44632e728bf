"""Values of later stages, asked about by the names that they have there: what they are in the propagated program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gspmd.inspect.annotating import find_value
from gspmd.inspect.explain import Explanation, explain
from gspmd.inspect.provenance import Pass, earlier_values, origins, replayed
from gspmd.ir.errors import UsageError
from gspmd.ir.graph import Program
from gspmd.ir.printer import value_names
from gspmd.propagation.reasons import Reasons


def explain_anywhere(
    programs: Mapping[str, Program], passes: Mapping[str, Pass], reasons: Reasons, name: str, stage: str | None
) -> Explanation:
    """Explain a value of the propagated program, or of a later stage by its name there, with what it is or helps make.

    Without a stage the propagated one comes first, then the later ones in order. `passes` leads to the stages after
    `propagated`. Raises UsageError for a name that is nowhere, and for a stage that is not there.
    """
    wanted = name.strip().removeprefix("%")
    base = programs["propagated"]
    if stage is None:
        has = (s for s in ("propagated", *passes) if s in programs and wanted in value_names(programs[s]).values())
        stage = next(has, "propagated")
    elif stage not in programs:
        raise UsageError(f"there is no stage {stage!r}", fix=f"use one of {', '.join(programs)}")
    if stage not in passes:
        return explain(base, reasons, wanted)
    later = programs[stage]
    value = find_value(value_names(later), wanted)
    stages = list(passes)
    steps = [passes[s] for s in stages[: stages.index(stage) + 1]]
    found = earlier_values(later, base, origins(replayed(base, steps)))
    if value not in found:
        raise UsageError(f"%{wanted} of stage {stage} stands for no value of the propagated stage")
    own = value_names(base)[found[value]]
    op = next((node.op.name for node in later.body.walk() if value in node.results), "")
    made = f"what {op} makes" if op else "a parameter"
    told = f"%{wanted} of stage {stage} is {made} for %{own}"
    explanation = explain(base, reasons, own)
    return replace(explanation, notes=(*explanation.notes, told))
