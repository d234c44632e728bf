"""`gspmd.numpy`: the array API for traced code, by its own names and NumPy's where the two differ.

Every function takes traced arrays, NumPy arrays and Python numbers, and works only while a function is being traced.
"""

from __future__ import annotations

from math import e, inf, nan, pi
from typing import NoReturn

from gspmd.frontend import numpy_fft as fft
from gspmd.frontend import numpy_linalg as linalg
from gspmd.frontend.conv import avg_pool, conv, conv_transpose, max_pool
from gspmd.frontend.einsum import dot, einsum, inner, matmul, matvec, outer, tensordot, vdot, vecdot, vecmat
from gspmd.frontend.nn import gelu, layer_norm, log_softmax, relu, rms_norm, silu, softmax, softplus
from gspmd.frontend.numpy_calculus import (
    convolve,
    correlate,
    cross,
    diff,
    ediff1d,
    gradient,
    interp,
    polyval,
    trapezoid,
    unwrap,
    vander,
)
from gspmd.frontend.numpy_choose import (
    choose,
    compress,
    piecewise,
    put_along_axis,
    ravel_multi_index,
    select,
    unravel_index,
)
from gspmd.frontend.numpy_core import broadcast_shapes, broadcast_to
from gspmd.frontend.numpy_creation import (
    arange,
    asarray,
    astype,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    identity,
    linspace,
    one_hot,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from gspmd.frontend.numpy_creation import asarray as array
from gspmd.frontend.numpy_dtypes import (
    bfloat16,
    bool_,
    can_cast,
    complex64,
    complex128,
    finfo,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    isdtype,
    ndim,
    result_type,
    shape,
    size,
    uint8,
    uint16,
    uint32,
    uint64,
)
from gspmd.frontend.numpy_dtypes import bool_ as bool
from gspmd.frontend.numpy_histogram import bincount, digitize, histogram, histogram_bin_edges, isin, searchsorted
from gspmd.frontend.numpy_index import dynamic_slice, dynamic_update_slice, take, take_along_axis
from gspmd.frontend.numpy_integers import gcd, lcm, lexsort
from gspmd.frontend.numpy_join import (
    append,
    array_split,
    ascontiguousarray,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    block,
    column_stack,
    delete,
    diag,
    diag_indices,
    diagflat,
    dsplit,
    dstack,
    fliplr,
    flipud,
    hsplit,
    hstack,
    indices,
    insert,
    kron,
    meshgrid,
    rot90,
    tri,
    tril_indices,
    tril_indices_from,
    triu_indices,
    triu_indices_from,
    unstack,
    vsplit,
    vstack,
)
from gspmd.frontend.numpy_join import vstack as row_stack
from gspmd.frontend.numpy_logic import (
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    equal,
    greater,
    greater_equal,
    isclose,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
)
from gspmd.frontend.numpy_logic import bitwise_invert as bitwise_not
from gspmd.frontend.numpy_logic import bitwise_invert as invert
from gspmd.frontend.numpy_logic import bitwise_left_shift as left_shift
from gspmd.frontend.numpy_logic import bitwise_right_shift as right_shift
from gspmd.frontend.numpy_math import (
    abs,
    add,
    clip,
    divide,
    floor_divide,
    maximum,
    minimum,
    multiply,
    negative,
    positive,
    power,
    reciprocal,
    remainder,
    square,
    stop_gradient,
    subtract,
    where,
)
from gspmd.frontend.numpy_math import abs as absolute
from gspmd.frontend.numpy_math import abs as fabs
from gspmd.frontend.numpy_math import divide as true_divide
from gspmd.frontend.numpy_math import positive as copy
from gspmd.frontend.numpy_math import power as pow
from gspmd.frontend.numpy_math import remainder as mod
from gspmd.frontend.numpy_more import (
    angle,
    degrees,
    divmod,
    float_power,
    fmax,
    fmin,
    fmod,
    geomspace,
    heaviside,
    i0,
    iscomplex,
    isneginf,
    isposinf,
    isreal,
    logaddexp2,
    logspace,
    modf,
    nextafter,
    radians,
    rint,
    sinc,
)
from gspmd.frontend.numpy_more import degrees as rad2deg
from gspmd.frontend.numpy_more import radians as deg2rad
from gspmd.frontend.numpy_nan import (
    nan_to_num,
    nanargmax,
    nanargmin,
    nancumprod,
    nancumsum,
    nanmax,
    nanmean,
    nanmin,
    nanprod,
    nanstd,
    nansum,
    nanvar,
)
from gspmd.frontend.numpy_pad import pad
from gspmd.frontend.numpy_reduce import (
    all,
    allclose,
    any,
    argmax,
    argmin,
    array_equal,
    count_nonzero,
    cumprod,
    cumsum,
    cumulative_sum,
    logsumexp,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from gspmd.frontend.numpy_reduce import cumprod as cumulative_prod
from gspmd.frontend.numpy_reduce import max as amax
from gspmd.frontend.numpy_reduce import min as amin
from gspmd.frontend.numpy_shape import (
    broadcast_arrays,
    concatenate,
    diagonal,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    ravel,
    repeat,
    reshape,
    roll,
    split,
    squeeze,
    stack,
    swapaxes,
    tile,
    trace,
    transpose,
    tril,
    triu,
)
from gspmd.frontend.numpy_shape import concatenate as concat
from gspmd.frontend.numpy_shape import transpose as permute_dims
from gspmd.frontend.numpy_sort import argsort, sort, top_k
from gspmd.frontend.numpy_special import (
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    cbrt,
    ceil,
    conj,
    copysign,
    cos,
    cosh,
    erf,
    exp,
    exp2,
    expm1,
    floor,
    hypot,
    imag,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    real,
    round,
    rsqrt,
    sigmoid,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)
from gspmd.frontend.numpy_special import arccos as acos
from gspmd.frontend.numpy_special import arccosh as acosh
from gspmd.frontend.numpy_special import arcsin as asin
from gspmd.frontend.numpy_special import arcsinh as asinh
from gspmd.frontend.numpy_special import arctan as atan
from gspmd.frontend.numpy_special import arctan2 as atan2
from gspmd.frontend.numpy_special import arctanh as atanh
from gspmd.frontend.numpy_special import conj as conjugate
from gspmd.frontend.numpy_special import round as around
from gspmd.frontend.numpy_special import trunc as fix
from gspmd.frontend.numpy_statistics import (
    average,
    corrcoef,
    cov,
    median,
    nanmedian,
    nanpercentile,
    nanquantile,
    percentile,
    ptp,
    quantile,
)
from gspmd.frontend.numpy_windows import bartlett, blackman, fromfunction, hamming, hanning, ix_, kaiser
from gspmd.frontend.promotion import promote_types
from gspmd.frontend.tracer import ArrayLike

newaxis = None

_UNKNOWN_SHAPES = frozenset(
    ("argwhere", "extract", "flatnonzero", "intersect1d", "nonzero", "setdiff1d", "setxor1d", "trim_zeros", "union1d")
    + ("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values")
)
_ELSEWHERE = {
    "random": "use gspmd.random, whose numbers come from keys, or draw with NumPy and pass them in",
    "vectorize": "functions of gspmd.numpy take arrays of any shape: let the function take the whole array",
}


def __getattr__(name: str) -> NoReturn:
    """Say why a function of NumPy's is not here."""
    if name in _UNKNOWN_SHAPES:
        raise AttributeError(
            f"gspmd.numpy has no {name}: the shape of its result depends on values that are only known when the "
            "program runs; mask with where, or take the first so many with top_k or sort"
        )
    instead = f": {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
    raise AttributeError(f"module 'gspmd.numpy' has no attribute {name!r}{instead}")


__all__ = [
    "ArrayLike", "abs", "absolute", "acos", "acosh", "add", "all", "allclose", "amax", "amin", "angle", "any", "append",
    "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "argsort",
    "around", "array", "array_equal", "array_split", "asarray", "ascontiguousarray", "asin", "asinh", "astype", "atan",
    "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "average", "avg_pool", "bartlett", "bfloat16",
    "bincount", "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "blackman", "block", "bool", "bool_", "broadcast_arrays", "broadcast_shapes",
    "broadcast_to", "can_cast", "cbrt", "ceil", "choose", "clip", "column_stack", "complex64", "complex128", "compress",
    "concat", "concatenate", "conj", "conjugate", "conv", "conv_transpose", "convolve", "copy", "copysign", "corrcoef",
    "correlate", "cos", "cosh", "count_nonzero", "cov", "cross", "cumprod", "cumsum", "cumulative_prod",
    "cumulative_sum", "deg2rad", "degrees", "delete", "diag", "diag_indices", "diagflat", "diagonal", "diff",
    "digitize", "divide", "divmod", "dot", "dsplit", "dstack", "dynamic_slice", "dynamic_update_slice", "e", "ediff1d",
    "einsum", "empty", "empty_like", "equal", "erf", "exp", "exp2", "expand_dims", "expm1", "eye", "fabs", "fft",
    "finfo", "fix", "flip", "fliplr", "flipud", "float8_e4m3fn", "float8_e5m2", "float16", "float32", "float64",
    "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod", "fromfunction", "full", "full_like", "gcd", "gelu",
    "geomspace", "gradient", "greater", "greater_equal", "hamming", "hanning", "heaviside", "histogram",
    "histogram_bin_edges", "hsplit", "hstack", "hypot", "i0", "identity", "iinfo", "imag", "indices", "inf", "inner",
    "insert", "int8", "int16", "int32", "int64", "interp", "invert", "isclose", "iscomplex", "isdtype", "isfinite",
    "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "ix_", "kaiser", "kron", "layer_norm", "lcm",
    "left_shift", "less", "less_equal", "lexsort", "linalg", "linspace", "log", "log1p", "log2", "log10", "log_softmax",
    "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "logspace", "logsumexp",
    "matmul", "matrix_transpose", "matvec", "max", "max_pool", "maximum", "mean", "median", "meshgrid", "min",
    "minimum", "mod", "modf", "moveaxis", "multiply", "nan", "nan_to_num", "nanargmax", "nanargmin", "nancumprod",
    "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd",
    "nansum", "nanvar", "ndim", "negative", "newaxis", "nextafter", "not_equal", "one_hot", "ones", "ones_like",
    "outer", "pad", "percentile", "permute_dims", "pi", "piecewise", "polyval", "positive", "pow", "power", "prod",
    "promote_types", "ptp", "put_along_axis", "quantile", "rad2deg", "radians", "ravel", "ravel_multi_index", "real",
    "reciprocal", "relu", "remainder", "repeat", "reshape", "result_type", "right_shift", "rint", "rms_norm", "roll",
    "rot90", "round", "row_stack", "rsqrt", "searchsorted", "select", "shape", "sigmoid", "sign", "signbit", "silu",
    "sin", "sinc", "sinh", "size", "softmax", "softplus", "sort", "split", "sqrt", "square", "squeeze", "stack", "std",
    "stop_gradient", "subtract", "sum", "swapaxes", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile",
    "top_k", "trace", "transpose", "trapezoid", "tri", "tril", "tril_indices", "tril_indices_from", "triu",
    "triu_indices", "triu_indices_from", "true_divide", "trunc", "uint8", "uint16", "uint32", "uint64", "unravel_index",
    "unstack", "unwrap", "vander", "var", "vdot", "vecdot", "vecmat", "vsplit", "vstack", "where", "zeros",
    "zeros_like",
]  # fmt: skip
