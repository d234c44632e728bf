"""Why some programs cost more bytes under our shardings than under somebody else's."""

from __future__ import annotations

from collections.abc import Mapping

_SWAPPED = (
    "two carries that change places, which the arguments split differently: each hears its own argument first, and "
    "every trip exchanges; the other lets one split pass through both"
)

_LOOKED_UP = (
    "features of a table and rows of indices want one axis: alone, moving indices is cheaper, but in a model they are "
    "the batch, which all that follows keeps (models/language_model_fsdp)"
)

REASONS: Mapping[tuple[str, str], str] = {
    ("control/loop_swapped_clash", "shardy"): _SWAPPED,
    ("control/loop_swapped_clash", "xla"): _SWAPPED,
    ("indexing/embed_clash", "shardy"): _LOOKED_UP,
    ("marks/replicated_axis", "xla"): "XLA cannot be told to keep an axis off a value",
    ("marks/priority_batch_first", "xla"): "XLA cannot be told which annotation comes first",
}
