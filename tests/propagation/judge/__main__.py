"""Compare our propagation with Shardy's and XLA's on all programs; rewrites docs/propagation.md.

python -m tests.propagation.judge [--ask] [NAME ...]     names: only shows those; `--ask` asks the judges again first
python -m tests.propagation.judge --random 100 [--seed 7]     random programs instead, nothing is recorded
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tests.propagation.judge.compare import Question, bill, question
from tests.propagation.judge.page import PAGE, page, row, summary
from tests.propagation.judge.random_programs import random_module
from tests.propagation.judge.record import Answer, ask, digest, load, save
from tests.propagation.judge.verdict import Verdict, asked, comparisons, programs, verdict
from tests.xla.version import jaxlib_version


def verdicts(questions: Mapping[str, Question], answers: Mapping[str, Answer]) -> Iterable[Verdict]:
    """The verdict on each program, beside each judge."""
    for name, q in questions.items():
        found = comparisons(name, q, answers[name])
        ours = bill(q, {}) if any(c.differing for c in found) else None
        for comparison in found:
            yield verdict(comparison, q, answers[name], ours)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns 1 if some program costs more than a judge's and nobody says why."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.propagation.judge", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ask", action="store_true", help="ask the judges again")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="judge N random programs instead")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    if args.random:
        seeds = range(args.seed, args.seed + args.random)
        questions = {f"random_{s}": question(random_module(s).program) for s in seeds}
        return _show(list(verdicts(questions, ask(questions))))
    names = tuple(args.names)
    questions = {n: asked(c) for n, c in programs() if not names or n.partition("/")[2].startswith(names)}
    stored = load()
    current = dict(stored.get(jaxlib_version(), {}))
    stale = {n: q for n, q in questions.items() if args.ask or n not in current or current[n].digest != digest(q)}
    if stale:
        current |= ask(stale)
        gone = set(current) - {n for n, _ in programs()}
        save(stored | {jaxlib_version(): {n: a for n, a in current.items() if n not in gone}})
    found = list(verdicts(questions, current))
    if not names:
        PAGE.write_text(page(found), encoding="utf-8")
    return _show(found)


def _show(found: Sequence[Verdict]) -> int:
    for v in found:
        if v.kind not in ("equal", "silent"):
            print(row(v))
    print(summary(found))
    print(dict(Counter(v.kind for v in found)))
    return 1 if any(v.kind == "more" and not v.reason for v in found) else 0


if __name__ == "__main__":
    raise SystemExit(main())
