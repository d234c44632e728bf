"""A cursor over the IR's text: skips blanks and comments, matches tokens where it stands, reports errors with a caret.

The grammar has few kinds of tokens but long ones (types, shardings, byte strings), so the parser asks for the token
that it wants at a place and there is no token list.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import NoReturn

from gspmd.ir.errors import ParseError

_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_COMMENT = re.compile(r"[ \t]*//([^\n]*)")
_SHOWN = re.compile(r'"[^"\n]{0,20}|%?[\w.]+|.', re.DOTALL)
WORD = re.compile(r"[A-Za-z_]\w*")
MAX_DEPTH = 40  # of regions or brackets in one another; keeps the recursive parser off Python's own limit
_WINDOW = 100  # characters of a long source line that an error shows


class Scanner:
    """A position in a text; `filename` is what errors and default locations call the text."""

    __slots__ = ("depth", "filename", "pos", "text")

    def __init__(self, text: str, filename: str) -> None:
        self.text = text
        self.filename = filename
        self.pos = 0
        self.depth = 0

    def skip(self) -> None:
        """Go past blanks and comments."""
        match = _BLANK.match(self.text, self.pos)
        self.pos = match.end() if match else self.pos

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Go past the pattern if it stands next, blanks left out; returns its match."""
        self.skip()
        match = pattern.match(self.text, self.pos)
        if match is not None:
            self.pos = match.end()
        return match

    def take(self, literal: str) -> bool:
        """Go past the literal if it stands next; tells whether it did."""
        self.skip()
        if not self.text.startswith(literal, self.pos):
            return False
        self.pos += len(literal)
        return True

    def peek(self, literal: str) -> bool:
        """Whether the literal stands next."""
        self.skip()
        return self.text.startswith(literal, self.pos)

    def expect(self, literal: str) -> None:
        """Go past the literal; ParseError if something else stands next."""
        if not self.take(literal):
            self.fail(f"expected {literal!r}, found {self.found()}")

    def keyword(self, word: str) -> bool:
        """Go past the whole word if it stands next; tells whether it did."""
        self.skip()
        match = WORD.match(self.text, self.pos)
        if match is None or match[0] != word:
            return False
        self.pos = match.end()
        return True

    def need(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """Go past the pattern; ParseError naming `what` was expected if something else stands next."""
        match = self.match(pattern)
        if match is None:
            self.fail(f"expected {what}, found {self.found()}")
        return match

    def comment(self) -> str | None:
        """The text of the comment on the rest of this line, if nothing else stands before it."""
        match = _COMMENT.match(self.text, self.pos)
        return match[1].strip() if match else None

    def at_line_end(self) -> bool:
        """Whether nothing but a comment stands on the rest of this line."""
        match = _SPACE.match(self.text, self.pos)
        end = match.end() if match else self.pos
        return end >= len(self.text) or self.text[end] in "\r\n" or self.text.startswith("//", end)

    def enter(self) -> None:
        """Go one bracket or region deeper; ParseError if that is too deep."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"nested deeper than {MAX_DEPTH} levels")

    def leave(self) -> None:
        """Come out of a bracket or region."""
        self.depth -= 1

    def found(self) -> str:
        """What stands next, to be put into a message."""
        self.skip()
        match = _SHOWN.match(self.text, self.pos)
        return repr(match[0]) if match else "the end of the text"

    def line(self, pos: int | None = None) -> int:
        """The line number of a position, from 1."""
        return self.text.count("\n", 0, self.pos if pos is None else pos) + 1

    def fail(self, message: str, pos: int | None = None, fix: str = "") -> NoReturn:
        """Raise a ParseError at a position (default: what stands next), its line shown with a caret."""
        if pos is None:
            self.skip()
            pos = self.pos
        pos = min(pos, len(self.text))
        start = self.text.rfind("\n", 0, pos) + 1
        end = self.text.find("\n", pos)
        source = self.text[start : end if end >= 0 else len(self.text)]
        column = pos - start
        first = max(0, column - _WINDOW // 2) if len(source) > _WINDOW else 0
        shown = "".join(c if c.isprintable() else " " for c in source[first : first + _WINDOW])
        where = f"{self.filename}:{self.line(pos)}:{column + 1}"
        raise ParseError(f"{where}: {message}\n  {shown.rstrip()}\n  {' ' * (column - first)}^", fix=fix)


def suggestion(name: str, known: list[str]) -> str:
    """`; did you mean add?` for a name close to a known one, else nothing."""
    close = get_close_matches(name, known, n=3)
    return f"; did you mean {' or '.join(close)}?" if close else ""
