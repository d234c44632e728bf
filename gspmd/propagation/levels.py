"""Who may tell whom, and how early: the priority of a step between two tensors of one op.

Paper section 3.5 and XLA give each op a pass in which it propagates, op by op. Here the level follows from the two
tensors' factor sets alone: what costs nothing and keeps all dimensions comes first, what may force a choice later.
"""

from collections.abc import Sequence

from gspmd.ir.rule import Direction

SHIFTED = 3  # a split of one side of a slice, pad or concatenation that changes a dimension's size much
MOVED = 4  # axes on a dimension that an op needs whole go to another dimension
NEVER = 9  # two tensors that share no factor
FIRST_BACKWARD = 2  # from this level on, steps mostly run from results to operands: deep ops go first

# Level by how the source's factors relate to the target's, and by direction.
_LEVELS: dict[tuple[str, Direction], int] = {
    ("equal", "forward"): 0,
    ("equal", "backward"): 0,
    ("equal", "sideways"): 0,
    ("fewer", "forward"): 3,  # broadcast: what little says of much, such as a bias of activations
    ("indices", "forward"): 1,  # what indices say of what is looked up at them
    ("fewer", "backward"): 3,  # what a reduction's result says of its operand
    ("fewer", "sideways"): 2,
    ("more", "forward"): 1,  # reduction
    ("more", "backward"): 2,  # what a broadcast's result says of its small operand
    ("more", "sideways"): 2,
    ("neither", "forward"): 1,  # dot
    ("neither", "backward"): 1,
    ("neither", "sideways"): 2,  # of two operands, after what results say: weights say little of activations
}


def level_matrix(
    factors: Sequence[frozenset[int]],
    operands: int,
    silent: Sequence[Direction] = (),
    lookups: frozenset[int] = frozenset(),
) -> tuple[tuple[int, ...], ...]:
    """`matrix[source][target]`: the level of every step of an op, whose first tensors are its operands.

    Nothing is told in directions that are `silent`. `lookups` are factors addressed by data. Where only one piece is
    cut out along them, or put in, they do not make tensors differ: a row of a stack, or a part of a cache, and the
    whole have all dimensions in common.
    """
    given = frozenset[int]().union(*factors[:operands])
    cut = frozenset(f for f in lookups if sum(bool(held) and f not in held for held in factors) == 1)

    def level(source: int, target: int) -> int:
        if (source < operands) == (target < operands):
            direction: Direction = "sideways"
        else:
            direction = "forward" if source < operands else "backward"
        a, b = factors[source], factors[target]
        if source == target or direction in silent or not a & b:
            return NEVER
        if a - cut == b - cut:
            return _LEVELS["equal", direction]
        if a < b:
            looked_up = direction == "forward" and b <= given and lookups - b
            return _LEVELS["indices" if looked_up else "fewer", direction]
        return _LEVELS["more" if a > b else "neither", direction]

    numbers = range(len(factors))
    return tuple(tuple(level(s, t) for t in numbers) for s in numbers)
