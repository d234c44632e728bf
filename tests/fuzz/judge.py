"""Takes a case through every stage: each verifies, reads back, and computes what one device computes."""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from gspmd.driver.steps import steps
from gspmd.ir.dtypes import dtype_kind
from gspmd.ir.errors import GspmdError, PartitionError, ShardingError, VerifyError
from gspmd.ir.graph import Program
from gspmd.ir.parser import parse_program
from gspmd.ir.printer import print_program
from gspmd.ir.verify import verify
from gspmd.kernels.closeness import compare
from gspmd.ops import OPS
from gspmd.optimizer.optimize import schedule
from gspmd.runtime.fusion import run as fusion
from tests.fuzz.generate import Case
from tests.fuzz.inputs import arguments
from tests.fuzz.noise import within_noise
from tests.ops.inputs import Array
from tests.partitioner import cases

# Seconds that compiling a small program may take, and after which a case is given up.
SLOW, GIVEN_UP = 5.0, 60
# One stage of so many is read back from its text.
_READ = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case: ok, refused, unstable (rounding decides), or differs, broken, slow with the stage."""

    kind: str
    stage: str = ""
    message: str = ""
    explicit: Program | None = None
    propagated: Program | None = None

    @property
    def bad(self) -> bool:
        """Whether this is a finding."""
        return self.kind in ("differs", "broken", "slow")

    def like(self, other: Outcome) -> bool:
        """Whether two findings may have one cause."""
        same = self.kind == other.kind and self.stage == other.stage
        return same and (self.kind != "broken" or self.message.split(":")[0] == other.message.split(":")[0])


class _TooLongError(Exception):
    pass


@contextmanager
def _limit(seconds: int) -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise _TooLongError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def judge(case: Case) -> Outcome:
    """Run a case through all stages."""
    found = Progress()
    try:
        with _limit(GIVEN_UP), np.errstate(all="ignore"):
            return _judge(case, found)
    except _TooLongError as error:
        return Outcome("slow", found.stage, str(error))
    except GspmdError as error:
        if found.running or not isinstance(error, (PartitionError, ShardingError)):
            return Outcome("broken", found.stage, f"{type(error).__name__}: {error}")
        return Outcome("refused", found.stage, f"{type(error).__name__} {error.rule}: {error.message}")
    except Exception as error:  # noqa: BLE001  any exception is a finding
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename.rpartition('/')[2]}:{place.lineno}"
        return Outcome("broken", found.stage, f"{type(error).__name__} {where}: {error}")


class Progress:
    """How far a case has come."""

    def __init__(self) -> None:
        self.stage, self.running = "annotated", True


def _judge(case: Case, at: Progress) -> Outcome:
    program = case.program
    verify(program, OPS)
    _reads_back(program)
    arrays = arguments(program, case.seed)
    expected = cases.reference(program, arrays)
    stages: dict[str, Program] = {}
    slow, unstable = 0.0, ""
    for i, step in enumerate(steps(case.without)):
        at.stage, at.running = step.stage, False
        start = time.process_time()
        before = program
        program = schedule(program, 1, case.without) if step.name == "fuse" else step.run(program)
        slow += time.process_time() - start
        at.running = True
        stages[step.stage] = program
        if program.body is before.body:
            continue
        verify(program, OPS)
        # Reading is slow: each case reads some of its stages back.
        again = _reads_back(program) if (case.seed + i) % _READ == 0 else program
        name = f"{step.stage}/{step.name}"
        with _meaning(case.kernels or step.name != "fuse"):
            actual = cases.run_local(again, arrays) if program.is_local else cases.reference(again, arrays)
        message = _difference(case.program, arrays, expected, actual)
        if message is None:
            unstable = unstable or name
        elif message:
            return Outcome("differs", name, message, stages.get("explicit"), stages["propagated"])
    both = stages.get("explicit"), stages["propagated"]
    if slow > SLOW:
        return Outcome("slow", "", f"{slow:.1f} s", *both)
    return Outcome("unstable", unstable, "", *both) if unstable else Outcome("ok", "", "", *both)


@contextmanager
def _meaning(kernels: bool) -> Iterator[None]:
    """Fused regions run op by op, unless kernels are to be compiled."""
    held = fusion._compiled  # pyright: ignore[reportPrivateUsage]
    if not kernels:
        fusion._compiled = lambda node: None  # pyright: ignore[reportPrivateUsage]
    try:
        yield
    finally:
        fusion._compiled = held  # pyright: ignore[reportPrivateUsage]


def _reads_back(program: Program) -> Program:
    text = print_program(program)
    again = parse_program(text, OPS)
    if print_program(again) != text:
        raise VerifyError("the text does not read back")
    return again


def _difference(
    program: Program, arrays: Sequence[Array], expected: Sequence[Array], actual: Sequence[Array]
) -> str | None:
    """Empty if equal, None if rounding decides, otherwise what differs."""
    message = ""
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        outcome = compare(a, e, exact=dtype_kind(e.dtype) not in ("float", "complex"))
        if not outcome.ok:
            message = f"result {i}: {outcome.message}"
            break
    if not message:
        return ""
    return None if within_noise(program, arrays, expected, actual) else message
