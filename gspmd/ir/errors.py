"""The errors that a user may see: one class a kind of mistake, one shape of message.

A message says the rule that was broken and the two facts that clash, then the line of the user's program, then how to
mend it::

    dot_general.C2: contracted sizes must agree: lhs dim 1 is 6, rhs dim 0 is 8
      at model.py:14
      fix: transpose one operand or contract another dimension
"""

from __future__ import annotations

from gspmd.ir.location import Location


class GspmdError(Exception):
    """A mistake in a program, its annotations or its use; its text is fit to be shown to the user as it is.

    `rule` names the constraint ("dot_general.C2"), `loc` is the user's line, `fix` says what to change.
    """

    def __init__(self, message: str, *, rule: str = "", loc: Location | None = None, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.rule = rule
        self.loc = loc
        self.fix = fix

    def __str__(self) -> str:
        head = f"{self.rule}: {self.message}" if self.rule else self.message
        lines = [head]
        if self.loc is not None:
            lines.append(f"  at {self.loc.text()}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)

    def at(self, loc: Location | None) -> GspmdError:
        """Give the error the user's line, unless it has one already; returns itself, to be raised."""
        if self.loc is None:
            self.loc = loc
        return self


class TypeRuleError(GspmdError):
    """Operands or attributes break an op's type rule (shape, rank, dtype)."""


class InvalidTypeError(TypeRuleError, ValueError):
    """There is no such tensor type: an unknown dtype, or a shape that is none; a ValueError too, as it is for NumPy."""


class ShardingError(GspmdError):
    """A mesh or a sharding is not well formed, or two of them clash."""


class PartitionError(GspmdError):
    """A program cannot be partitioned as asked."""


class ParseError(GspmdError):
    """A text is not in the language it should be in."""


class VerifyError(GspmdError):
    """A program breaks an invariant of its stage."""


class TraceError(GspmdError):
    """A traced Python function does what a traced function cannot do."""


class ExecutionError(GspmdError):
    """A program could not be run: wrong arguments, wrong number of ranks, no MPI."""


class LimitError(ExecutionError):
    """A compiled program does what it was compiled not to do: forbidden collectives, too many bytes."""


class UsageError(GspmdError):
    """The command line or the Python surface was called with something it cannot take."""
