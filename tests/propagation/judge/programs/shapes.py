"""What changes shapes and places: broadcast, reshape, transpose, slice, pad, concatenate, windows."""

from __future__ import annotations

from typing import Any

from gspmd import numpy as gnp
from tests.propagation.judge.programs.make import ODD, X4, XYZ, case, marked


def to(*shape: int) -> Any:
    return lambda a: gnp.reshape(a, shape)


def heads(a: Any) -> Any:
    return gnp.transpose(gnp.reshape(a, (16, 64, 8, 32)), (0, 2, 1, 3))


def stencil(a: Any) -> Any:
    wide = gnp.pad(a, ((1, 1), (0, 0)))
    return wide[2:] + wide[:-2] - 2.0 * a


def halves(a: Any) -> Any:
    a, b = a[:, :128], a[:, 128:]
    return gnp.concatenate([b, -a], axis=1)


def there_and_back(a: Any) -> Any:
    return gnp.reshape(gnp.tanh(gnp.reshape(a, (16 * 64, 256))), (16, 64, 256))


def conv(a: Any, k: Any) -> Any:
    return gnp.conv(a, k, padding="SAME")


IMAGE, KERNEL = "f32[16@x, 64, 64, 8]", "f32[3, 3, 8, 16]"

CASES = (
    case("broadcast_new_major", lambda a: gnp.broadcast_to(a, (64, 256, 128)), "f32[256@x, 128@y]"),
    case("broadcast_told_back", lambda a: gnp.broadcast_to(a, (64, 256, 128)), "f32[256, 128]", out=("_, x, y",)),
    case("broadcast_one", lambda a: gnp.broadcast_to(a, (64, 256)), "f32[1, 256@y]", out=("x, y",)),
    case("transpose", lambda a: a.T, "f32[256@x, 128@y]"),
    case("transpose_back", lambda a: gnp.transpose(a, (2, 0, 1)), "f32[16, 32, 64]", out=("y, x, _",)),
    case("reshape_merge_major", to(1024, 256), "f32[16@x, 64, 256@y]"),
    case("reshape_merge_minor", to(1024, 256), "f32[16, 64@y, 256]"),
    case("reshape_merge_both", to(1024, 256), "f32[16@x, 64@y, 256]"),
    case("reshape_merge_full_major", to(128, 256), "f32[2@x, 64@y, 256]"),
    case("reshape_split", to(16, 64, 256), "f32[1024@x, 256@y]"),
    case("reshape_split_two_axes", to(4, 256, 256), "f32[1024@y+x, 256]"),
    case("reshape_split_back", to(16, 64, 256), "f32[1024, 256]", out=("x, _, y",)),
    case("reshape_split_minor_back", to(2, 512, 256), "f32[1024, 256]", out=("x, y, _",)),
    case("reshape_heads", heads, "f32[16@x, 64, 256@y]"),
    case("reshape_heads_back", heads, "f32[16, 64, 256]", out=("x, y, _, _",)),
    case("reshape_there_and_back", there_and_back, "f32[16@x, 64@y, 256]"),
    case("reshape_ones", to(256, 1, 128), "f32[256@x, 128@y]"),
    case("reshape_ragged", to(20, 50), "f32[1000@y]", mesh=ODD),
    case("reshape_gcd", to(24, 16), "f32[16@x, 24]"),
    case("reshape_gcd_rest", to(10, 12), "f32[12@x, 10]", mesh=X4),
    case("slice_other_dim", lambda a: a[:, 10:100], "f32[256@x, 128]"),
    case("slice_split_dim", lambda a: a[10:200], "f32[256@x, 128]"),
    case("slice_half", lambda a: a[:128] * 2.0, "f32[256@x, 128@y]"),
    case("slice_strided", lambda a: a[::2], "f32[256@x, 128@y]"),
    case("slice_one", lambda a: a[3], "f32[256@x, 128@y]"),
    case("slice_told_back", lambda a: a[:128], "f32[256, 128]", out=("x, y",)),
    case("pad_little", lambda a: gnp.pad(a, ((1, 1), (0, 0))), "f32[256@x, 128@y]"),
    case("pad_other_dim", lambda a: gnp.pad(a, ((0, 0), (64, 64))), "f32[256@x, 128]"),
    case("pad_double", lambda a: gnp.pad(a, ((0, 256), (0, 0))), "f32[256@x, 128@y]"),
    case("concat_other_dim", lambda a, b: gnp.concatenate([a, b], axis=1), "f32[256@x, 128]", "f32[256, 64]"),
    case("concat_split_dim", lambda a, b: gnp.concatenate([a, b], axis=0), "f32[256@x, 128]", "f32[256@x, 128]"),
    case("concat_told_back", lambda a, b: gnp.concatenate([a, b], axis=0), "f32[256, 128]", "f32[256, 128]",
         out=("x, y",)),
    case("concat_clash", lambda a, b: gnp.concatenate([a, b], axis=1), "f32[256@x, 128]", "f32[256@y, 128]"),
    case("stack", lambda a, b: gnp.stack([a, b]), "f32[256@x, 128]", "f32[256, 128@y]"),
    case("halves_rotated", halves, "f32[512@x, 256]"),
    case("halves_rotated_split", halves, "f32[512, 256@y]"),
    case("roll", lambda a: gnp.roll(a, 1, axis=0) + a, "f32[256@x, 128]"),
    case("flip", lambda a: gnp.flip(a, 0), "f32[256@x, 128@y]"),
    case("stencil", stencil, "f32[256@x, 128@y]"),
    case("stencil_ragged", stencil, "f32[251@x, 128]", mesh=X4),
    case("tile", lambda a: gnp.tile(a, (2, 1)), "f32[256@x, 128@y]"),
    case("repeat", lambda a: gnp.repeat(a, 2, axis=0), "f32[256@x, 128@y]"),
    case("conv_batch", conv, IMAGE, KERNEL),
    case("conv_features", conv, "f32[16@x, 64, 64, 8]", "f32[3, 3, 8, 16@y]"),
    case("conv_space", conv, "f32[16, 64@x, 64@y, 8]", KERNEL),
    case("conv_inner", conv, "f32[16@x, 64, 64, 8@y]", "f32[3, 3, 8@y, 16]"),
    case("conv_told_back", conv, "f32[16, 64, 64, 8]", KERNEL, out=("x, _, _, y",)),
    case("conv_three_axes", conv, "f32[16@x, 64@y, 64, 8]", "f32[3, 3, 8, 16@z]", mesh=XYZ),
    case("pool", lambda a: gnp.max_pool(a, 2), "f32[16@x, 64@y, 64, 8]"),
    case("cumsum_other", lambda a: gnp.cumsum(a, axis=1), "f32[256@x, 128]"),
    case("cumsum_split", lambda a: gnp.cumsum(a, axis=0), "f32[256@x, 128@y]"),
    case("diff", lambda a: gnp.diff(a, axis=0), "f32[256@x, 128@y]"),
    case("annotated_reshape", lambda a: gnp.reshape(marked(a, "x", "y"), (128, 2, 64)), "f32[256, 64]"),
)  # fmt: skip
