"""Mutants that no law can kill because they are no faults, each (op, mutant) with the reason."""

_BOOLEANS = "true of booleans, whose sum is a disjunction; numbers are claimed already"

EQUIVALENT: dict[tuple[str, str], str] = {
    ("add", "claim linear in (0, 1)"): _BOOLEANS,
    ("multiply", "claim linear in (0,)"): _BOOLEANS,
    ("multiply", "claim linear in (1,)"): _BOOLEANS,
    ("dot_general", "claim linear in (0,)"): _BOOLEANS,
    ("dot_general", "claim linear in (1,)"): _BOOLEANS,
    (
        "shift_left",
        "claim linear in (0,)",
    ): "true of integers modulo 2^bits; not claimed, since nobody shifts partial sums",
    ("reshape", "pass factor 3"): "in the examples only a tensor without elements has a whole factor there",
    (
        "concatenate",
        "divide the access of operand 2 dim 1",
    ): "that operand has one element there, which 2 divides: at 0",
}
