"""Why some programs cost more bytes under our shardings than under somebody else's."""

from __future__ import annotations

from collections.abc import Mapping

_SWAPPED = (
    "two carries that change places, which the arguments split differently: each hears its own argument first, and "
    "every trip exchanges; the other lets one split pass through both"
)

REASONS: Mapping[tuple[str, str], str] = {
    ("control/loop_swapped_clash", "shardy"): _SWAPPED,
    ("control/loop_swapped_clash", "xla"): _SWAPPED,
    ("marks/replicated_axis", "xla"): "XLA cannot be told to keep an axis off a value",
    ("marks/priority_batch_first", "xla"): "XLA cannot be told which annotation comes first",
}
