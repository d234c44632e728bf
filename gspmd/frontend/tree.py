"""Nested Python containers of arrays: taken apart into leaves, put together again, with a path for each leaf.

Lists, tuples, named tuples, dicts and dataclasses nest; None is an empty container; everything else is a leaf.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from gspmd.ir.errors import UsageError
from gspmd.ir.location import user_location
from gspmd.ir.mesh import Mesh
from gspmd.ir.sharding import Sharding


@dataclass(frozen=True, slots=True)
class TreeDef:
    """The shape of a nesting: what it is built of, without the leaves; equal when the nestings are alike.

    `container` is the type to build from the children, None for a leaf; `keys` are how a path names them.
    """

    container: type | None
    keys: tuple[Any, ...] = ()
    children: tuple[TreeDef, ...] = ()

    @property
    def size(self) -> int:
        """The number of leaves."""
        return 1 if self.container is None else sum(child.size for child in self.children)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The nesting with these leaves; raises ValueError if they are too few or too many."""
        source = iter(leaves)
        try:
            tree = self._take(source)
        except StopIteration:
            raise ValueError(f"too few leaves for a nesting of {self.size}") from None
        if next(source, _END) is not _END:
            raise ValueError(f"too many leaves for a nesting of {self.size}")
        return tree

    def _take(self, leaves: Iterator[Any]) -> Any:
        if self.container is None:
            return next(leaves)
        # A list, not a generator: StopIteration must leave the function as it is.
        return _build(self.container, self.keys, [child._take(leaves) for child in self.children])

    def paths(self, root: str = "") -> list[str]:
        """How a program would write each leaf, `params.layer[0].w` for the root `params`."""
        if self.container is None:
            return [root]
        step = _step_of(self.container)
        return [
            path
            for key, child in zip(self.keys, self.children, strict=True)
            for path in child.paths(root + step(key) if root else step(key).removeprefix("."))
        ]

    def text(self) -> str:
        """The nesting as Python would print it, `*` for a leaf."""
        return repr(self.unflatten([_Star()] * self.size))


class _Star:
    def __repr__(self) -> str:
        return "*"


_END = object()
LEAF = TreeDef(None)


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a nesting, left to right (dicts with names as keys: sorted), and its shape."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def tree_map(function: Callable[..., Any], tree: Any, *more: Any) -> Any:
    """The nesting with each leaf replaced by the function of it (and of the leaves there in further nestings).

    Raises UsageError, at the user's line, if the nestings differ.
    """
    leaves, shape = flatten(tree)
    columns = [leaves]
    for other in more:
        found, other_shape = flatten(other)
        if other_shape != shape:
            message = f"tree_map of nestings that differ: {shape.text()} and {other_shape.text()}"
            raise UsageError(message, loc=user_location())
        columns.append(found)
    return shape.unflatten([function(*row) for row in zip(*columns, strict=True)])


def _flatten(tree: Any, leaves: list[Any]) -> TreeDef:
    parts = _parts(tree)
    if parts is None:
        leaves.append(tree)
        return LEAF
    container, keys, children = parts
    return TreeDef(container, keys, tuple(_flatten(child, leaves) for child in children))


def _parts(tree: Any) -> tuple[type, tuple[Any, ...], Sequence[Any]] | None:
    """The container's type, its keys and its children; None for a leaf."""
    if tree is None:
        return type(None), (), ()
    if isinstance(tree, dict):
        mapping = cast("dict[Any, Any]", tree)
        keys = list(mapping)
        if all(isinstance(key, str) for key in keys):
            keys.sort()
        return dict, tuple(keys), [mapping[key] for key in keys]
    if isinstance(tree, (list, tuple)):
        items = cast("Sequence[Any]", tree)
        fields = getattr(items, "_fields", None)
        return type(items), tuple(range(len(items))) if fields is None else tuple(fields), items
    if dataclasses.is_dataclass(tree) and not isinstance(tree, (type, Mesh, Sharding)) and not hasattr(tree, "dtype"):
        names = tuple(f.name for f in dataclasses.fields(tree) if f.init)
        return type(tree), names, [getattr(tree, name) for name in names]
    return None


def _build(container: type, keys: tuple[Any, ...], children: list[Any]) -> Any:
    if container is type(None):
        return None
    if container is dict:
        return dict(zip(keys, children, strict=True))
    build: Callable[..., Any] = container
    if hasattr(container, "_fields"):
        return build(*children)
    if dataclasses.is_dataclass(container):
        return build(**dict(zip(keys, children, strict=True)))
    return build(children)


def _step_of(container: type) -> Callable[[Any], str]:
    if container is dict or hasattr(container, "_fields") or dataclasses.is_dataclass(container):
        return _named_step
    return lambda key: f"[{key}]"


def _named_step(key: Any) -> str:
    return f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!r}]"
