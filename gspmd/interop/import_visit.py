"""One op of MLIR as the readers of ops see it: its operands as values of ours, its attributes, a way to emit.

Which attributes were read is remembered: what nobody read and is not known to be harmless is an error, so that nothing
of a program is lost in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from gspmd.interop.import_scope import Bound, Scope, all_leaves, nest, one
from gspmd.interop.import_types import Nested, Unsupported, ints, nested_type, tensor_type, word
from gspmd.ir.attrs import Attrs
from gspmd.ir.builder import Builder
from gspmd.ir.graph import Region, Value
from gspmd.ir.location import Location
from gspmd.ir.opdef import OpDef
from gspmd.ir.types import TensorType

if TYPE_CHECKING:
    from gspmd.interop.import_program import Importer

# Attributes that say nothing about values or shardings: how exactly to compute, hints, layouts in memory, provenance.
_HARMLESS_TEXT = (
    "_class algorithm device execution_thread fast_math indices_are_sorted mhlo.frontend_attributes mhlo.layout_mode "
    "mhlo.memory_kind mhlo.metadata mhlo.original_value operandSegmentSizes precision_config resultSegmentSizes "
    "result_accuracy result_layout sdy.sharding_rule source_layout unique_indices xla_shape"
)
HARMLESS = frozenset(_HARMLESS_TEXT.split())
# Dialects of other front ends and of what programs are compiled for: what they attach is their own.
_FOREIGN = frozenset(
    ("iree", "llvm", "ml_program", "tf", "tf_executor", "tf_saved_model", "tfl", "torch", "torch_c", "vm")
)
# Attributes that the importer itself reads on every op.
SHARDINGS = frozenset(("mhlo.sharding", "sdy.sharding"))

Handler = Callable[["Visit"], Sequence[Bound]]


def is_foreign(attribute: str) -> bool:
    """Whether an attribute of that name belongs to another front end's dialect."""
    dialect, dot, _ = attribute.partition(".")
    return bool(dot) and dialect in _FOREIGN


class Visit:
    """An op on its way in."""

    __slots__ = (
        "_attributes",
        "_names",
        "annotated",
        "importer",
        "loc",
        "names",
        "op",
        "path",
        "read",
        "scope",
        "untupled",
    )

    def __init__(self, importer: Importer, scope: Scope, op: Any, names: tuple[str, ...], loc: Location | None) -> None:
        self.importer = importer
        self.scope = scope
        self.op = op
        self.names = names
        self.loc = loc
        self.path = ""
        self.read: set[str] = set()
        self.annotated = False  # the handler has seen to the op's own sharding
        self.untupled = False  # `results` are the elements of the tuple that is the only result
        self._attributes = op.attributes
        self._names: frozenset[str] = frozenset(self._attributes)

    # -- operands and results -------------------------------------------------------------------------------------

    @property
    def builder(self) -> Builder:
        """Where nodes go."""
        return self.scope.builder

    @property
    def bound(self) -> tuple[Bound, ...]:
        """The operands, tuples as they are."""
        return tuple([self.scope.find(v) for v in self.op.operands])

    @property
    def operands(self) -> tuple[Value, ...]:
        """The operands, none of which is a tuple."""
        return tuple([one(self.scope.find(v)) for v in self.op.operands])

    @property
    def result(self) -> TensorType:
        """The type of the first result."""
        return tensor_type(self.op.results[0].type)

    @property
    def results(self) -> tuple[Nested, ...]:
        """The types of the results."""
        types = tuple(nested_type(r.type) for r in self.op.results)
        return types[0] if self.untupled and isinstance(types[0], tuple) else types

    @property
    def flat(self) -> tuple[Value, ...]:
        """All tensors of the operands, those of tuples too."""
        return all_leaves(self.bound)

    def nested(self, values: Sequence[Value]) -> Sequence[Bound]:
        """Tensors as the results, tuples among them."""
        found = iter(values)
        return [nest(t, found) for t in self.results]

    def literal(self, value: Value) -> NDArray[Any] | None:
        """The scalar that a value is known to be."""
        return self.scope.literals.get(value)

    # -- attributes -----------------------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Whether the op has an attribute."""
        return name in self._names

    def attribute(self, name: str) -> Any:
        """An attribute as jaxlib hands it out."""
        self.read.add(name)
        if name not in self._names:
            raise Unsupported(f"{self.op.name} has no attribute {name}")
        return self._attributes[name]

    def ints(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """An array of whole numbers."""
        return ints(self.attribute(name)) if default is None or self.has(name) else default

    def value(self, name: str, default: Any = None) -> Any:
        """A number, a truth value or a text."""
        return self.attribute(name).value if default is None or self.has(name) else default

    def word(self, name: str, default: str | None = None) -> str:
        """The word of an enumeration."""
        return word(self.attribute(name)) if default is None or self.has(name) else default

    def unread(self) -> list[str]:
        """The attributes that nobody read and that may matter."""
        rest = self._names - self.read
        return sorted(name for name in rest - HARMLESS - SHARDINGS if not is_foreign(name)) if rest else []

    # -- emission -------------------------------------------------------------------------------------------------

    def emit(
        self, op: OpDef[Any], operands: Sequence[Value], attrs: Attrs, regions: tuple[Region, ...] = ()
    ) -> tuple[Value, ...]:
        """Append the node that gives the op's results, which get the op's name."""
        name = self.names[0] if self.names else ""
        return op.emit(self.scope.builder, operands, attrs, regions, self.loc, name)
