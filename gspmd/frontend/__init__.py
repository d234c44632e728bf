"""The front end: Python functions of arrays become programs.

`tracer` runs them, `numpy_*` give the operations meaning, `grad` differentiates, `control` loops and branches, `trace`
is the way in. Tracers get their operators and methods here, once all of these exist.
"""

from __future__ import annotations

import numpy

from gspmd.frontend import (
    einsum,
    numpy_creation,
    numpy_index,
    numpy_logic,
    numpy_math,
    numpy_more,
    numpy_reduce,
    numpy_shape,
    numpy_sort,
    numpy_special,
    numpy_update,
)
from gspmd.frontend.tracer import bind

bind(
    {
        "abs": numpy_math.abs,
        "add": numpy_math.add,
        "all": numpy_reduce.all,
        "any": numpy_reduce.any,
        "argmax": numpy_reduce.argmax,
        "argmin": numpy_reduce.argmin,
        "argsort": numpy_sort.argsort,
        "astype": numpy_creation.astype,
        "at": numpy_update.At,
        "bitwise_and": numpy_logic.bitwise_and,
        "bitwise_invert": numpy_logic.bitwise_invert,
        "bitwise_left_shift": numpy_logic.bitwise_left_shift,
        "bitwise_or": numpy_logic.bitwise_or,
        "bitwise_right_shift": numpy_logic.bitwise_right_shift,
        "bitwise_xor": numpy_logic.bitwise_xor,
        "clip": numpy_math.clip,
        "conj": numpy_special.conj,
        "copy": numpy_math.positive,
        "cumprod": numpy_reduce.cumprod,
        "cumsum": numpy_reduce.cumsum,
        "diagonal": numpy_shape.diagonal,
        "divide": numpy_math.divide,
        "dot": einsum.dot,
        "equal": numpy_logic.equal,
        "flatten": numpy_shape.ravel,
        "floor_divide": numpy_math.floor_divide,
        "getitem": numpy_index.getitem,
        "greater": numpy_logic.greater,
        "greater_equal": numpy_logic.greater_equal,
        "imag": numpy_special.imag,
        "less": numpy_logic.less,
        "less_equal": numpy_logic.less_equal,
        "matmul": einsum.matmul,
        "matrix_transpose": numpy_shape.matrix_transpose,
        "max": numpy_reduce.max,
        "mean": numpy_reduce.mean,
        "min": numpy_reduce.min,
        "multiply": numpy_math.multiply,
        "negative": numpy_math.negative,
        "not_equal": numpy_logic.not_equal,
        "power": numpy_math.power,
        "prod": numpy_reduce.prod,
        "ravel": numpy_shape.ravel,
        "real": numpy_special.real,
        "remainder": numpy_math.remainder,
        "repeat": numpy_shape.repeat,
        "reshape": numpy_shape.reshape,
        "round": numpy_special.round,
        "squeeze": numpy_shape.squeeze,
        "std": numpy_reduce.std,
        "subtract": numpy_math.subtract,
        "sum": numpy_reduce.sum,
        "swapaxes": numpy_shape.swapaxes,
        "take": numpy_index.take,
        "trace": numpy_shape.trace,
        "transpose": numpy_shape.transpose,
        "var": numpy_reduce.var,
        # NumPy's functions on tracers (`np.exp(x)`) are looked up by the names of ufuncs.
        **{
            name: function
            for module in (numpy_logic, numpy_math, numpy_more, numpy_special)
            for name, function in vars(module).items()
            if isinstance(getattr(numpy, name, None), numpy.ufunc)
        },
        "conjugate": numpy_special.conj,
        "deg2rad": numpy_more.radians,
        "fabs": numpy_math.abs,
        "rad2deg": numpy_more.degrees,
        "absolute": numpy_math.abs,
    }
)
