"""Labels that survive other compilers: every value of an exported text gets its name, `%12`, as its source location.

The text is ours (generic form, one op a line), so that lines are enough to go by.
"""

from __future__ import annotations

import re

_OP = re.compile(r"\s*(?:(%\d+)(?::\d+)? = )?\"[\w.]+\"\(")
_CLOSING = re.compile(r"\s*\}\)")
_ARGUMENT = re.compile(
    r"(%\d+): (tensor<[^<>]*(?:<[^<>]*>)?[^<>]*>"
    r"(?: \{sdy\.sharding = #sdy\.sharding<[^>]*>\}| \{mhlo\.sharding = \"[^\"]*\"\})?)"
)


def labelled(text: str) -> str:
    """The text with the name of each value as the location of its op or block argument."""
    out: list[str] = []
    opened: list[str] = []
    for line in text.splitlines():
        made = _OP.match(line)
        if line.lstrip().startswith(("^bb", "func.func")):
            head, arrow, tail = line.partition(" -> ")
            line = _ARGUMENT.sub(_with_location, head) + arrow + tail
        elif made and line.endswith("({"):
            opened.append(made[1] or "")
        elif made and made[1]:
            line = f'{line} loc("{made[1]}")'
        elif _CLOSING.match(line) and (name := opened.pop()):
            line = f'{line} loc("{name}")'
        out.append(line)
    return "\n".join(out) + "\n"


def _with_location(found: re.Match[str]) -> str:
    return f'{found[1]}: {found[2]} loc("{found[1]}")'
