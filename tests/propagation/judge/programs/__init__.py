"""The programs, by kind."""

from __future__ import annotations

from tests.propagation.judge.programs import control, indexing, marks, models, pointwise, products, shapes

FAMILIES = {
    "pointwise": pointwise.CASES,
    "products": products.CASES,
    "shapes": shapes.CASES,
    "indexing": indexing.CASES,
    "control": control.CASES,
    "marks": marks.CASES,
    "models": models.CASES,
}
