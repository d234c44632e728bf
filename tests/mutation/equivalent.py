"""Mutants that no law can kill because they are no faults, each (op, mutant) with the reason."""

_BOOLEANS = "true of booleans, whose sum is a disjunction; numbers are claimed already"
_SQUARE = "both dimensions are whole and of one size: they are never split"
_ADDED = "the local body adds up what the devices have, whatever the kind says"

EQUIVALENT: dict[tuple[str, str], str] = {
    ("add", "claim linear in (0, 1)"): _BOOLEANS,
    ("multiply", "claim linear in (0,)"): _BOOLEANS,
    ("multiply", "claim linear in (1,)"): _BOOLEANS,
    ("dot_general", "claim linear in (0,)"): _BOOLEANS,
    ("dot_general", "claim linear in (1,)"): _BOOLEANS,
    (
        "shift_left",
        "claim linear in (0,)",
    ): "true of integers modulo 2^bits, but nobody shifts partial sums",
    ("reshape", "pass factor 3"): "the result alone would be split, which a fetch in flat space can do",
    (
        "concatenate",
        "divide the access of operand 2 dim 1",
    ): "that operand has one element there, at 0, which 2 divides",
    ("fft", "swap operand 0 dims 2 and 3"): _SQUARE,
    ("cholesky", "swap operand 0 dims 2 and 3"): _SQUARE,
    ("cholesky", "swap result 0 dims 2 and 3"): _SQUARE,
    ("triangular_solve", "swap operand 0 dims 1 and 2"): _SQUARE,
    ("solve", "swap operand 0 dims 1 and 2"): _SQUARE,
    ("qr", "swap result 1 dims 1 and 2"): _SQUARE,
    ("svd", "swap result 2 dims 1 and 2"): _SQUARE,
    ("eigh", "swap operand 0 dims 1 and 2"): _SQUARE,
    ("eigh", "swap result 0 dims 1 and 2"): _SQUARE,
    ("eig", "swap operand 0 dims 1 and 2"): _SQUARE,
    ("eig", "swap result 1 dims 1 and 2"): _SQUARE,
    ("eig", "swap result 2 dims 0 and 1"): _SQUARE,
    ("schur", "swap operand 0 dims 1 and 2"): _SQUARE,
    ("schur", "swap result 0 dims 1 and 2"): _SQUARE,
    ("schur", "swap result 1 dims 1 and 2"): _SQUARE,
    ("gehrd", "swap operand 0 dims 1 and 2"): _SQUARE,
    ("gehrd", "swap result 0 dims 1 and 2"): _SQUARE,
    ("sytrd", "swap operand 0 dims 1 and 2"): _SQUARE,
    ("sytrd", "swap result 0 dims 1 and 2"): _SQUARE,
    ("batch_norm_training", "pass factor 0"): _ADDED,
    ("batch_norm_training", "pass factor 1"): _ADDED,
    ("batch_norm_training", "pass factor 2"): _ADDED,
    ("batch_norm_training", "pass factor 3"): _ADDED,
    ("batch_norm_grad", "pass factor 0"): _ADDED,
    ("batch_norm_grad", "pass factor 1"): _ADDED,
    ("batch_norm_grad", "pass factor 2"): _ADDED,
    ("all_gather", "drop linear in (0,)"): "a sum is never passed on to an op that makes more of it",
    ("next_after", "claim linear in (0,)"): "true within rounding, of which a step is one unit",
    ("sharding_constraint", "claim linear in (0,)"): "true of numbers, but an annotation is about final values",
    ("sharding_group", "claim linear in (0,)"): "true of numbers, but an annotation is about final values",
    ("propagation_barrier", "claim linear in (0,)"): "true of numbers, but an annotation is about final values",
    ("optimization_barrier", "claim linear in (0, 1)"): "true of numbers, but a barrier is about final values",
}
