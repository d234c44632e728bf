"""Whether attributes are equal to the bit, as nodes must be that are to become one."""

from __future__ import annotations

from gspmd.ir.attr_text import attrs_text
from gspmd.ir.attrs import Attrs
from gspmd.ir.memo import compares_bits


def same_attrs(a: Attrs, b: Attrs) -> bool:
    """Whether two attributes are equal to the bit: by text, since `==` takes -0.0 for 0.0 and no NaN for another."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if compares_bits(type(a)):
        return a == b
    return attrs_text(a) == attrs_text(b)
