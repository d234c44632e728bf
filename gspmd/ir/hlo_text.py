"""The grammar of XLA's sharding text, such as `{devices=[2,1,4]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}`.

Follows HloSharding::ToString of openxla/xla. What the tile assignment means on a mesh is in `hlo_sharding.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from gspmd.ir.errors import ShardingError

SUBGROUP_KINDS = ("manual", "replicated", "unreduced")
_METADATA = re.compile(r",?\s*metadata=\{(?:[^{}]|\{[^{}]*\})*\}|,?\s*shard_(?:as|like) \d+")
_COMMENT = re.compile(r"/\*.*?\*/")  # XLA numbers the elements of long tuples: /*index=5*/
_MAXIMAL = re.compile(r"maximal device=(\d+)")
_TILED = re.compile(
    r"devices=\[(?P<tile>[\d,\s]+)\]\s*"
    r"(?:<=\[(?P<iota>[\d,\s]+)\](?:\s*T\((?P<perm>[\d,\s]+)\))?|(?P<list>\d+(?:\s*,\s*\d+)*))"
    r"(?:\s+(?:(?P<replicate>last_tile_dim_replicate)|last_tile_dims=\{(?P<last>[\w,\s]*)\}))?"
)


@dataclass(frozen=True, slots=True)
class HloTiling:
    """A parsed sharding: its kind and, if it is tiled, the tile assignment.

    `kind` is "tiled" or one word that stands for all devices: "replicated", "manual", "unreduced", "maximal". The
    device list is either the iota over `iota` transposed by `perm`, or `devices`. The last `len(subgroups)` entries of
    `tile` count devices that share a tile.
    """

    kind: str
    tile: tuple[int, ...] = ()
    subgroups: tuple[str, ...] = ()
    iota: tuple[int, ...] = ()
    perm: tuple[int, ...] = ()
    devices: tuple[int, ...] | None = None

    @property
    def rank(self) -> int:
        """The number of dimensions of the tensor, for a tiled sharding."""
        return len(self.tile) - len(self.subgroups)

    @property
    def count(self) -> int:
        """The number of devices, for a tiled sharding."""
        return prod(self.tile)

    def device_list(self, order: tuple[int, ...] | None = None) -> NDArray[np.int64]:
        """The devices in row-major order of the tile assignment, ascending within each replica group.

        They are positions in the device order if one is given, else device ids.
        """
        if self.devices is None:
            ids = np.arange(self.count).reshape(self.iota).transpose(self.perm)
        else:
            ids = np.array(self.devices, np.int64)
        if order is not None:
            ids = np.argsort(np.array(order))[ids]
        ids = ids.reshape(self.tile)
        for i, kind in enumerate(self.subgroups):
            if kind == "replicated":
                ids = np.sort(ids, axis=self.rank + i)
        return ids.ravel()


@lru_cache(maxsize=4096)
def parse_hlo(text: str) -> HloTiling:
    """Read the text of one sharding that is no tuple; raises ShardingError if it is malformed."""
    body = _METADATA.sub("", text.strip())
    if not (body.startswith("{") and body.endswith("}")):
        raise _malformed(text, "it must stand in braces")
    body = body[1:-1].strip()
    if body in SUBGROUP_KINDS:
        return HloTiling(body)
    if _MAXIMAL.fullmatch(body):
        return HloTiling("maximal")
    m = _TILED.fullmatch(body)
    if m is None:
        raise _malformed(text, "expected replicated, manual, unreduced, maximal device=k, or devices=[...]")
    tile = _numbers(m["tile"])
    last = ("replicated",) if m["replicate"] else tuple(k.strip() for k in (m["last"] or "").split(",") if k.strip())
    if any(kind not in SUBGROUP_KINDS for kind in last):
        raise _malformed(text, f"last_tile_dims may be {', '.join(SUBGROUP_KINDS)}")
    if len(last) > len(tile) or 0 in tile:
        raise _malformed(text, "the tile counts must be positive, one per dimension and subgroup")
    if m["list"] is not None:
        devices = _numbers(m["list"])
        if sorted(devices) != list(range(prod(tile))):
            raise _malformed(text, f"the device list must hold each of 0..{prod(tile) - 1} once")
        return HloTiling("tiled", tile, last, devices=devices)
    iota = _numbers(m["iota"])
    perm = _numbers(m["perm"]) if m["perm"] else tuple(range(len(iota)))
    if prod(iota) != prod(tile) or sorted(perm) != list(range(len(iota))):
        raise _malformed(text, f"{prod(tile)} tiles do not match an iota of {prod(iota)} devices, transposed by {perm}")
    return HloTiling("tiled", tile, last, iota, perm)


def split_tuple(text: str) -> tuple[str, ...]:
    """The texts of the elements of a tuple's sharding `{{...}, {...}}`; raises ShardingError if it is no tuple."""
    body = _COMMENT.sub("", text).strip()
    if not (body.startswith("{") and body.endswith("}")):
        raise _malformed(text, "it must stand in braces")
    body = body[1:-1]
    depth, start = 0, 0
    found: list[str] = []
    for i, c in enumerate(body):
        if c == "{":
            start = i if depth == 0 else start
            depth += 1
        elif c == "}":
            depth -= 1
            if depth == 0:
                found.append(body[start : i + 1])
        elif depth == 0 and c not in ", \n\t":
            raise _malformed(text, "a tuple's sharding holds one sharding in braces per element")
    return tuple(found)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(x) for x in text.split(",") if x.strip())


def _malformed(text: str, why: str) -> ShardingError:
    return ShardingError(f"{text!r} is not XLA's text of a sharding: {why}", rule="hlo.C1")
