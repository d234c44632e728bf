"""Who may tell whom, and how early: the priority of a step between two tensors of one op.

Paper section 3.5 and XLA give each op a pass in which it propagates, op by op. Here the level follows from the two
tensors' factor sets alone: what costs nothing and keeps all dimensions comes first, what may force a choice later.
"""

from collections.abc import Sequence

NEVER = 9  # two tensors that share no factor
FIRST_BACKWARD = 2  # from this level on, steps mostly run from results to operands: deep ops go first

# Level by how the source's factors relate to the target's, and by direction.
_LEVELS = {
    ("equal", "forward"): 0,
    ("equal", "backward"): 0,
    ("equal", "sideways"): 0,
    ("fewer", "forward"): 0,  # broadcast
    ("fewer", "backward"): 3,  # what a reduction's result says of its operand
    ("fewer", "sideways"): 2,
    ("more", "forward"): 1,  # reduction
    ("more", "backward"): 2,  # what a broadcast's result says of its small operand
    ("more", "sideways"): 2,
    ("neither", "forward"): 1,  # dot
    ("neither", "backward"): 1,
    ("neither", "sideways"): 1,
}


def step_level(source: frozenset[int], target: frozenset[int], source_is_operand: bool, target_is_operand: bool) -> int:
    """The level at which a tensor with the source's factors may tell one with the target's; NEVER if none is shared."""
    if not source & target:
        return NEVER
    if source == target:
        relation = "equal"
    elif source < target:
        relation = "fewer"
    else:
        relation = "more" if source > target else "neither"
    if source_is_operand == target_is_operand:
        direction = "sideways"
    else:
        direction = "forward" if source_is_operand else "backward"
    return _LEVELS[relation, direction]


def level_matrix(factors: Sequence[frozenset[int]], operands: int) -> tuple[tuple[int, ...], ...]:
    """`matrix[source][target]`: the level of every step of an op, whose first tensors are its operands."""
    numbers = range(len(factors))
    return tuple(
        tuple(NEVER if s == t else step_level(factors[s], factors[t], s < operands, t < operands) for t in numbers)
        for s in numbers
    )
