"""Sorts, top-k, random bits, Fourier transforms and linear algebra."""

from __future__ import annotations

from tests.xla.single.program import X2, X3, X4, XY, op

LESS = "(%a: f32[], %b: f32[]) { %lt = compare(%a, %b) direction=LT : bool[] return %lt }"
LESS_OF_PAIRS = (
    "(%a: f32[], %b: f32[], %i: i32[], %j: i32[]) { %lt = compare(%a, %b) direction=LT : bool[] return %lt }"
)

SORTS = (
    op("sort:rows", X4, f"sort(f32[64@x, 32]) dimension=1 {LESS}", "x, _"),
    op("sort:split", X4, f"sort(f32[64@x, 32]) dimension=0 {LESS}", "x, _"),
    op("sort:split_ragged", X3, f"sort(f32[64@x, 32]) dimension=0 {LESS}", "x, _"),
    op("sort:split_to_columns", X4, f"sort(f32[64@x, 32]) dimension=0 {LESS}", "_, x"),
    op("sort:split_to_whole", X4, f"sort(f32[64@x, 32]) dimension=0 {LESS}", "_, _"),
    op("sort:vector", X4, f"sort(f32[64@x]) dimension=0 {LESS}", "x"),
    op("sort:2d", XY, f"sort(f32[64@x, 32@y]) dimension=1 {LESS}", "x, y"),
    op("sort:idle_axis", XY, f"sort(f32[64, 32@y]) dimension=1 {LESS}", "_, y"),
    op("sort:pairs", X4, f"sort(f32[64@x, 32], i32[64@x, 32]) dimension=0 is_stable=true {LESS_OF_PAIRS}", "x, _",
       "x, _"),
    op("sort:pairs_rows", X4, f"sort(f32[64@x, 32], i32[64@x, 32]) dimension=1 is_stable=true {LESS_OF_PAIRS}", "x, _",
       "x, _"),
    op("sort:pairs_mismatched", X4, f"sort(f32[64@x, 32], i32[64, 32@x]) dimension=1 is_stable=true {LESS_OF_PAIRS}",
       "x, _", "x, _"),
    op("sort:free", X4, f"sort(f32[64@x, 32]) dimension=0 {LESS}"),
    op("top_k:rows", X4, "top_k(f32[64@x, 32]) k=4", "x, _", "x, _"),
    op("top_k:split", X4, "top_k(f32[64, 32@x]) k=4", "_, _", "_, _"),
    op("top_k:split_ragged", X3, "top_k(f32[64, 32@x]) k=4", "_, _", "_, _"),
    op("top_k:split_long", X4, "top_k(f32[16, 1024@x]) k=8", "_, _", "_, _"),
    op("top_k:split_2d", XY, "top_k(f32[16@x, 1024@y]) k=8", "x, _", "x, _"),
    op("top_k:split_most", X4, "top_k(f32[100@x]) k=40", "_", "_"),
    op("top_k:rows_to_columns", X3, "top_k(f32[32, 96, 100]) k=5", "_, _, x", "_, _, x"),
    op("top_k:split_to_rows", X4, "top_k(f32[16, 1024@x]) k=8", "x, _", "x, _"),
)  # fmt: skip

RANDOM = (
    op("rng:split", X4, "rng_bit_generator(u64[2]) shape=[64, 32] dtype=u32 algorithm=THREE_FRY", "_", "x, _"),
    op("rng:split_ragged", X3, "rng_bit_generator(u64[2]) shape=[64, 32] dtype=u32 algorithm=THREE_FRY", "_", "x, _"),
    op("rng:2d", XY, "rng_bit_generator(u64[2]) shape=[64, 32] dtype=u32 algorithm=PHILOX", "_", "x, y"),
    op("rng:whole", X4, "rng_bit_generator(u64[2]) shape=[64, 32] dtype=u32 algorithm=PHILOX", "_", "_, _"),
)

TRANSFORMS = (
    op("fft:batch", X4, "fft(c64[16@x, 64]) kind=FFT length=[64]", "x, _"),
    op("fft:batch_ragged", X3, "fft(c64[16@x, 64]) kind=IFFT length=[64]", "x, _"),
    op("fft:real_batch", X4, "fft(f32[16@x, 64]) kind=RFFT length=[64]", "x, _"),
    op("fft:inverse_real_batch", X4, "fft(c64[16@x, 33]) kind=IRFFT length=[64]", "x, _"),
    op("fft:split", X4, "fft(c64[16, 64@x]) kind=FFT length=[64]", "_, x"),
    op("fft:split_to_rows", X4, "fft(c64[16, 64@x]) kind=FFT length=[64]", "x, _"),
    op("fft:split_to_whole", X4, "fft(c64[16, 64@x]) kind=FFT length=[64]", "_, _"),
    op("fft:split_vector", X4, "fft(c64[64@x]) kind=FFT length=[64]", "x"),
    op("fft:two_dims", X4, "fft(c64[8@x, 16, 16]) kind=FFT length=[16, 16]", "x, _, _"),
    op("fft:two_dims_split", X4, "fft(c64[8, 16@x, 16]) kind=FFT length=[16, 16]", "_, x, _"),
    op("fft:2d", XY, "fft(c64[16@x, 64@y]) kind=FFT length=[64]", "x, y"),
    op("fft:real_split", X4, "fft(f32[16, 64@x]) kind=RFFT length=[64]", "_, x"),
)

MATRICES = (
    op("cholesky:batch", X4, "cholesky(f32[8@x, 16, 16]) lower=true", "x, _, _", definite=True),
    op("cholesky:batch_ragged", X3, "cholesky(f32[8@x, 16, 16]) lower=true", "x, _, _", definite=True),
    op("cholesky:rows", X4, "cholesky(f32[8, 16@x, 16]) lower=true", "_, x, _", definite=True),
    op("cholesky:matrix", X4, "cholesky(f32[32@x, 32]) lower=true", "x, _", definite=True),
    op("triangular_solve:batch", X4, "triangular_solve(f32[8@x, 16, 16], f32[8@x, 16, 24])", "x, _, _", definite=True),
    op("triangular_solve:columns", X4, "triangular_solve(f32[8, 16, 16], f32[8, 16, 24@x])", "_, _, x", definite=True),
    op("triangular_solve:rows", X4, "triangular_solve(f32[8, 16, 16], f32[8, 16@x, 24])", "_, x, _", definite=True),
    op("triangular_solve:matrix_rows", X4, "triangular_solve(f32[8, 16@x, 16], f32[8, 16, 24])", "_, _, _",
       definite=True),
    op("triangular_solve:from_the_right", XY, "triangular_solve(f32[24, 32@y, 32], f32[24, 64@y, 32]) left_side=false",
       "x, _, y", definite=True),
    op("triangular_solve:2d", XY, "triangular_solve(f32[8@x, 16, 16], f32[8@x, 16, 24@y])", "x, _, y", definite=True),
    op("qr:batch", X2, "qr(f32[8@x, 16, 12])", "x, _, _", "x, _, _"),
    op("lu:batch", X4, "lu(f32[8@x, 16, 16])", "x, _, _", "x, _", "x, _", definite=True),
    op("eigh:batch", X4, "eigh(f32[8@x, 8, 8])", "x, _, _", "x, _", definite=True),
    op("solve:batch", X4, "solve(f32[8@x, 16, 16], f32[8@x, 16, 24])", "x, _, _", definite=True),
)  # fmt: skip

SINGLES = (*SORTS, *RANDOM, *TRANSFORMS, *MATRICES)
