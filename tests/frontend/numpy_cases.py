"""What gspmd.numpy and NumPy should do alike: putting arrays together, choosing, counting, testing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

RANDOM = np.random.default_rng(11)
A = RANDOM.standard_normal((4, 6)).astype("f4")
B = RANDOM.standard_normal((4, 6)).astype("f4")
C = RANDOM.standard_normal((3, 2)).astype("f4")
D = RANDOM.standard_normal((2, 3, 4)).astype("f4")
V = RANDOM.standard_normal(7).astype("f4")
W = RANDOM.standard_normal(3).astype("f4")
POS = (np.abs(A) + 0.1).astype("f4")
N = np.where(RANDOM.random((4, 6)) < 0.3, np.nan, A).astype("f4")
I = RANDOM.integers(-9, 9, (4, 6)).astype("i4")  # noqa: E741
J = RANDOM.integers(0, 4, (4, 6)).astype("i4")
K = RANDOM.integers(0, 9, 20).astype("i4")
M = RANDOM.random((4, 6)) > 0.5
Z = (A + 1j * B).astype("c8")
SORTED = np.sort(RANDOM.standard_normal(9)).astype("f4")
STEPS = np.array([-2.0, -0.0, 0.0, 3.0, np.nan], "f4")
ODD = np.array([np.nan, np.inf, -np.inf, 1.5, -0.0], "f4")
ANGLES = np.cumsum(RANDOM.uniform(-5, 5, (3, 8)), axis=1).astype("f4")

# What takes the module, gspmd.numpy or NumPy, and arrays; and the arrays.
Case = tuple[Callable[..., Any], tuple[Any, ...]]

JOIN: dict[str, Case] = {
    "atleast": (lambda m, x: [m.atleast_1d(x, 2.0), m.atleast_2d(x, x[0]), m.atleast_3d(x, x[0], x[0, 0])], (A,)),
    "vstack": (lambda m, x, y: [m.vstack([x, y]), m.vstack([x[0], y[0]])], (A, B)),
    "hstack": (lambda m, x, y: [m.hstack([x, y]), m.hstack([x[0], y[1]]), m.hstack([x[0, 0], 3.0])], (A, B)),
    "dstack": (lambda m, x, y: [m.dstack([x, y]), m.dstack([x[0], y[0]])], (A, B)),
    "column_stack": (lambda m, x, y: [m.column_stack([x[:, 0], y]), m.column_stack([x[0], y[0]])], (A, B)),
    "block": (
        lambda m, x, y: [
            m.block([[x, y], [m.ones((1, 6), "f4"), y[:1]]]),
            m.block([x[0], y[0]]),
            m.block(x),
            m.block([[x[0]], [y[0]]]),
            m.block([[[x]], [[y]]]),
        ],
        (A, B),
    ),
    "append": (lambda m, x, y: [m.append(x, y), m.append(x, y, axis=1), m.append(x, y[:2], 0)], (A, B)),
    "insert": (
        lambda m, x, v: [
            m.insert(v, 2, 5.0),
            m.insert(v, 2, v[:3]),
            m.insert(v, [0, 2, 7], v[:3]),
            m.insert(v, [3, 1], [8.0, 9.0]),
            m.insert(v, -1, 4.0),
            m.insert(v, slice(1, 5, 2), 0.0),
            m.insert(x, 1, 0.5, axis=1),
            m.insert(x, 1, x[0], axis=0),
            m.insert(x, [1, 3], x[:, :2], axis=1),
            m.insert(x, 3, 1.0),
        ],
        (A, V),
    ),
    "delete": (
        lambda m, x, v: [
            m.delete(v, 2),
            m.delete(v, [0, -1]),
            m.delete(v, slice(None, None, 2)),
            m.delete(x, 1, 1),
            m.delete(x, [0, 3], axis=0),
            m.delete(x, 5),
        ],
        (A, V),
    ),
    "splits": (
        lambda m, x, d: [
            *m.array_split(x, 4, 1),
            *m.array_split(x, [1, 3], 0),
            *m.vsplit(x, 2),
            *m.hsplit(x, 3),
            *m.hsplit(x[0], 2),
            *m.dsplit(d, 2),
            *m.unstack(d, axis=1),
        ],
        (A, D),
    ),
    "flips": (lambda m, x: [m.fliplr(x), m.flipud(x), m.copy(x)], (A,)),
    "rot90": (lambda m, x, d: [m.rot90(x, k) for k in range(-2, 4)] + [m.rot90(d, 1, (1, 2))], (A, D)),
    "meshgrid": (
        lambda m, x, y: [
            *m.meshgrid(x, y),
            *m.meshgrid(x, y, indexing="ij"),
            *m.meshgrid(x, y, x[:2], sparse=True),
            *m.meshgrid(x),
        ],
        (V, W),
    ),
    "indices": (lambda m: m.indices((2, 3)), ()),
    "diag": (lambda m, x, v: [m.diag(x), m.diag(x, 2), m.diag(v), m.diag(v, 2), m.diag(v, -1), m.diagflat(x)], (A, W)),
    "tri": (lambda m: [m.tri(3), m.tri(3, 5, 1), m.tri(4, 2, -1, dtype="int32")], ()),
    "triangle indices": (
        lambda m, x: [
            x[m.tril_indices(4)],
            x[m.triu_indices(4, 1, 6)],
            x[m.tril_indices_from(x, -1)],
            x[m.triu_indices_from(x)],
            x[m.diag_indices(4)],
        ],
        (A,),
    ),
    "kron": (lambda m, x, y, v: [m.kron(x, y), m.kron(v, y), m.kron(v, v), m.kron(x, 2.0)], (A, C, W)),
    "compress": (lambda m, x: [m.compress([1, 0, 1], x, 1), m.compress([False, True], x, 0), m.compress([1], x)], (A,)),
    "sizes": (lambda m, x: [x * m.size(x), x * m.size(x, 1), x * m.ndim(x), x * m.shape(x)[0]], (A,)),
    "dtypes": (lambda m, x: [x.astype(m.int32), m.zeros(3, m.float16), m.ones(2, dtype=m.bool_) & True], (A,)),
}

PAD_MODES = ("constant", "edge", "reflect", "symmetric", "wrap", "maximum", "minimum", "mean")
PAD: dict[str, Case] = {
    **{
        mode: (lambda m, x, mode=mode: [m.pad(x, w, mode=mode) for w in (2, ((1, 0), (0, 9)), (11, 2))], (A,))
        for mode in PAD_MODES
    },
    "values": (
        lambda m, x: [
            m.pad(x, 2, constant_values=((1, 2), (3, 4))),
            m.pad(x, ((1, 2), (0, 1)), constant_values=(5, 6)),
        ],
        (A,),
    ),
    "integers": (lambda m, x: [m.pad(x, 1, mode="mean"), m.pad(x, 1, mode="edge"), m.pad(x, 3, "wrap")], (I,)),
    "three": (lambda m, x: [m.pad(x, ((1, 1), (0, 0), (2, 1)), "reflect"), m.pad(x, 1, "edge")], (D,)),
    "one": (lambda m, x: [m.pad(x[:1], ((3, 2), (0, 0)), "edge"), m.pad(x[:1], ((3, 2), (0, 0)), "reflect")], (A,)),
}

CHOOSE: dict[str, Case] = {
    "select": (
        lambda m, x, y: [
            m.select([x > 1, x > 0], [x, y]),
            m.select([x > 1, y > 0], [x * 2, y], default=7.0),
            m.select([x[0] > 0], [x]),
        ],
        (A, B),
    ),
    "piecewise": (
        lambda m, x: [
            m.piecewise(x, [x < 0, x > 1], [lambda t: -t, lambda t: t * t]),
            m.piecewise(x, [x < 0], [3, lambda t: t + 1]),
            m.piecewise(x, [x > -1, x > 0], [-1.0, 1.0]),
        ],
        (A,),
    ),
    "choose": (
        lambda m, i, x, y: [
            m.choose(i, [x, y, 1.0, 2.0], mode="clip"),
            m.choose(i - 1, [x, y], mode="clip"),
            m.choose(i, [x, y, x * 2], mode="wrap"),
            m.choose(i, [x], mode="clip"),
        ],
        (J, A, B),
    ),
    "ravel_multi_index": (
        lambda m, i, j: [m.ravel_multi_index((i, j), (4, 7)), m.ravel_multi_index((i, j * 3), (4, 5), mode="wrap")],
        (J, J[::-1].copy()),
    ),
    "clipped index": (lambda m, i, j: m.ravel_multi_index((i, j), (3, 2), mode="clip"), (J, I)),
    "unravel_index": (
        lambda m, i: [*m.unravel_index(i, (3, 7)), *m.unravel_index(i, 20), *m.unravel_index(3, (2, 2))],
        (K,),
    ),
    "isin": (lambda m, x: [m.isin(x, [1, 3]), m.isin(x, np.array([[2], [0]]), invert=True)], (J,)),
}

COUNT: dict[str, Case] = {
    "count_nonzero": (
        lambda m, x, b: [
            m.count_nonzero(x),
            m.count_nonzero(x, 0),
            m.count_nonzero(b, axis=(0, 1)),
            m.count_nonzero(x, axis=1, keepdims=True),
        ],
        (J, M),
    ),
    "searchsorted": (
        lambda m, a, x: [
            m.searchsorted(a, x),
            m.searchsorted(a, x, side="right"),
            m.searchsorted(a, 0.5),
            m.searchsorted(a, a),
            m.searchsorted(a, a, "right"),
        ],
        (SORTED, A),
    ),
    "searchsorted nan": (
        lambda m, a, x: [m.searchsorted(a, x), m.searchsorted(a, x, "right")],
        (np.array([-1, 0, 2, np.nan, np.nan], "f4"), np.append(STEPS, np.float32(9))),
    ),
    "searchsorted integers": (lambda m, a, x: m.searchsorted(a, x), (np.array([0, 1, 1, 3], "i4"), J)),
    "digitize": (
        lambda m, x: [
            m.digitize(x, np.array([-1.0, 0.0, 0.5])),
            m.digitize(x, np.array([1.0, 0.0, -0.5])),
            m.digitize(x, np.array([0.0]), right=True),
        ],
        (A,),
    ),
    "digitize edges": (
        lambda m, x, b: [
            m.digitize(x, b),
            m.digitize(x, b, right=True),
            m.digitize(x, b[::-1]),
            m.digitize(x, b[::-1], right=True),
        ],
        (K, np.array([1, 3, 4, 8], "i4")),
    ),
    "bincount": (
        lambda m, w: [m.bincount(K), m.bincount(K, minlength=12), m.bincount(K, weights=w)],
        (RANDOM.random(20).astype("f4"),),
    ),
    "histogram": (
        lambda m, x, w: [
            *m.histogram(x),
            *m.histogram(x, 5, range=(-1, 1)),
            *m.histogram(x, bins=4, weights=w),
            *m.histogram(x, bins=np.array([-3.0, -1.0, 0.0, 0.25, 3.0])),
            *m.histogram(x, bins=3, density=True),
            m.histogram_bin_edges(x, 3),
        ],
        (A, POS),
    ),
    "histogram integers": (
        lambda m, x: [*m.histogram(x, bins=[0, 1, 2, 3]), *m.histogram(x, bins=4, range=(0, 4))],
        (J,),
    ),
    "histogram flat": (lambda m, x: [*m.histogram(x * 0, 3)], (A,)),
}

TESTS: dict[str, Case] = {
    "isclose": (lambda m, x: [m.isclose(x, x + 1e-9), m.isclose(x, x), m.isclose(x, x, equal_nan=True)], (N,)),
    "allclose": (lambda m, x, y: [m.allclose(x, x), m.allclose(x, y), m.allclose(x, x[0] * 0, atol=100.0)], (A, B)),
    "allclose nan": (lambda m, x: [m.allclose(x, x), m.allclose(x, x, equal_nan=True)], (N,)),
    "array_equal": (
        lambda m, x: [
            m.array_equal(x, x),
            m.array_equal(x, x[1:]),
            m.array_equal(x, x, equal_nan=True),
            m.array_equal(x[:, :1] * 0, 0 * x[:, :1]),
        ],
        (N,),
    ),
    "kinds": (lambda m, x: [m.isposinf(x), m.isneginf(x), m.isreal(x)], (ODD,)),
    "complex": (lambda m, x: [m.isreal(x), m.iscomplex(x), m.angle(x), m.angle(x, deg=True)], (Z,)),
}

DTYPES: dict[str, Case] = {
    "result_type": (
        lambda m, x, i: [
            m.zeros(2, m.result_type(x, np.float16)),
            m.zeros(2, m.result_type(np.int8, np.uint8, 3)),
            m.zeros(2, m.result_type(x, 1j)),
            m.zeros(2, m.result_type(x, True)),
        ],
        (A, I),
    ),
    "can_cast": (
        lambda m, x: x * sum(
            m.can_cast(a, b, casting=how) * 2**k
            for k, (a, b, how) in enumerate([
                (np.int32, np.int64, "safe"), (np.int64, np.int32, "safe"), (np.int32, np.float32, "safe"),
                (np.float64, np.float32, "same_kind"), (np.float32, np.int32, "same_kind"), (np.bool_, "int8", "safe"),
            ])
        ),
        (A,),
    ),
    "isdtype": (
        lambda m, x: x * sum(
            m.isdtype(np.dtype(d), k) * 2**n
            for n, (d, k) in enumerate([
                ("i4", "integral"), ("i4", "unsigned integer"), ("u1", ("bool", "unsigned integer")), ("f4", "numeric"),
                ("f4", "real floating"), ("c8", "real floating"), ("c8", "complex floating"), ("?", "numeric"),
                ("f4", np.float32), ("f4", (np.float64, np.int8)),
            ])
        ),
        (A,),
    ),
    "bool": (lambda m, x: [x.astype(m.bool), m.ones(2, dtype=m.bool)], (J,)),
}  # fmt: skip

GRIDS: dict[str, Case] = {
    "windows": (
        lambda m: (
            [w(n) for w in (m.bartlett, m.blackman, m.hamming, m.hanning) for n in (1, 2, 7)] + [m.kaiser(6, 5.0)]
        ),
        (),
    ),
    "fromfunction": (
        lambda m: [
            m.fromfunction(lambda i, j: i * 10 + j, (3, 4)),
            m.fromfunction(lambda i, by: i * by, (5,), dtype="int32", by=3),
        ],
        (),
    ),
    "ix_": (lambda m, x: [x[m.ix_([0, 2], [5, 1, 3])], x[m.ix_(np.array([True, False, True, True]), [2])]], (A,)),
    "ascontiguousarray": (lambda m, x: [m.ascontiguousarray(x.T), m.ascontiguousarray(x[0, 0], "float32")], (A,)),
    "lexsort": (
        lambda m, i, x: [m.lexsort((x, i)), m.lexsort((x, i, i[::-1]), axis=0), m.lexsort([i[0], i[1]])],
        (J, A),
    ),
    "divisors": (
        lambda m, i, j: [m.gcd(i, j), m.gcd(i, 12), m.lcm(i, j), m.lcm(i[0], j[:, :1]), m.gcd(m.abs(i), 0)],
        (I, RANDOM.integers(-60, 60, (4, 6)).astype("i4")),
    ),
    "arg of complex": (
        lambda m, z: [f(z, axis) for f in (m.argmax, m.argmin) for axis in (None, 0, 1)],
        (np.array([[1 + 2j, 1 - 2j, 1 + 2j, -3], [-3 + 1j, complex(2, np.nan), 5, complex(np.nan, 1)]], "c8"),),
    ),
    "arg of infinite": (
        lambda m, z: [m.argmax(z, 1), m.argmin(z, 1), m.argmax(z, 1, keepdims=True)],
        (np.array([[complex(-np.inf, -np.inf), complex(-np.inf, 0)], [complex(1, np.inf), complex(1, np.inf)]], "c8"),),
    ),
    "products of vectors": (
        lambda m, x, z, v: [m.matvec(x, v), m.matvec(z, v), m.vecmat(v[:4], x), m.vecmat(z[0], z.T), m.matvec(x, x)],
        (A, Z, V[:6]),
    ),
    "rfft2": (
        lambda m, d: [
            m.fft.rfft2(d),
            m.fft.rfft2(d, s=(2, 6), axes=(0, 2), norm="ortho"),
            m.fft.irfft2(m.fft.rfft2(d)),
        ],
        (D,),
    ),
    "shifts of integers": (lambda m, k: [m.fft.fftshift(k), m.fft.ifftshift(k)], (I,)),
    "diagonals of matrices": (
        lambda m, d: [m.linalg.trace(d), m.linalg.trace(d, offset=1), m.linalg.diagonal(d, offset=-1)],
        (D,),
    ),
    "methods": (lambda m, x: [x.copy() * x.nbytes, x.conjugate() * x.itemsize, m.round(x, 1), *divmod(x, 0.25)], (A,)),
    "hfft": (
        lambda m, z: [
            f(x, n, axis, norm)
            for f, x in ((m.fft.hfft, z), (m.fft.ihfft, z.real))
            for n, axis, norm in ((None, -1, None), (5, 0, "ortho"), (8, 1, "forward"))
        ],
        (Z,),
    ),
}

TABLES = (JOIN, PAD, CHOOSE, COUNT, TESTS, DTYPES, GRIDS)
