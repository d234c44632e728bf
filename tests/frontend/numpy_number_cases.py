"""What gspmd.numpy and NumPy should do alike: statistics, calculus, functions of numbers."""

from __future__ import annotations

import numpy as np

from tests.frontend.numpy_cases import ANGLES, ODD, POS, RANDOM, SORTED, STEPS, A, B, Case, D, I, M, N, V, W, Z

STATISTICS: dict[str, Case] = {
    "median": (
        lambda m, x, d: [
            m.median(x),
            m.median(x, 0),
            m.median(x, axis=1, keepdims=True),
            m.median(d, axis=(0, 2)),
            m.median(d, axis=1),
            m.median(d, (2, 0), keepdims=True),
        ],
        (A, D),
    ),
    "median nan": (lambda m, x: [m.median(x, 1), m.median(x), m.nanmedian(x, 1), m.nanmedian(x)], (N,)),
    "median infinite": (
        lambda m, x: m.median(x, 1),
        (np.array([[1, 2, np.inf, np.inf], [-np.inf, 0, 1, -np.inf]], np.float32),),
    ),
    "median of integers": (lambda m, x: [m.median(x), m.median(x, 0)], (I,)),
    "percentile": (
        lambda m, x: [
            m.percentile(x, 30),
            m.percentile(x, [0, 12.5, 100], axis=1),
            m.percentile(x, np.array([[5, 50], [95, 99]]), axis=0, keepdims=True),
        ],
        (A,),
    ),
    "quantile": (
        lambda m, x: (
            [m.quantile(x, 0.3, axis=0, method=how) for how in ("linear", "lower", "higher", "midpoint", "nearest")]
            + [m.quantile(x, [0.25, 0.5], 1)]
        ),
        (A,),
    ),
    "quantile at traced parts": (
        lambda m, x, q: [m.quantile(x, q, axis=0), m.percentile(x, q * 100)],
        (A, np.array([0.0, 0.3, 1.0], "f4")),
    ),
    "nanquantile": (
        lambda m, x: (
            [m.nanquantile(x, 0.3), m.nanquantile(x, [0.1, 0.9], axis=1, keepdims=True), m.nanpercentile(x, 80, axis=0)]
            + [m.nanquantile(x, 0.4, 1, method=how) for how in ("lower", "higher", "midpoint", "nearest")]
        ),
        (N,),
    ),
    "ptp": (lambda m, x: [m.ptp(x), m.ptp(x, 0), m.ptp(x, axis=1, keepdims=True)], (A,)),
    "average": (
        lambda m, x, w: [
            m.average(x),
            m.average(x, 0),
            m.average(x, weights=w),
            m.average(x, 1, w),
            m.average(x, axis=0, weights=w[:, 0]),
            *m.average(x, 1, w, returned=True),
            *m.average(x, axis=1, returned=True),
            m.average(x, 1, w, keepdims=True),
        ],
        (A, POS),
    ),
    "average of integers": (lambda m, x: m.average(x, axis=0), (I,)),
    "cov": (
        lambda m, x, y: [
            m.cov(x),
            m.cov(x, y),
            m.cov(x, rowvar=False),
            m.cov(x, bias=True),
            m.cov(x, ddof=2),
            m.cov(x[0]),
            m.cov(x[0], y[0]),
        ],
        (A, B),
    ),
    "cov complex": (lambda m, x: m.cov(x), (Z,)),
    "corrcoef": (
        lambda m, x, y: [m.corrcoef(x), m.corrcoef(x, y), m.corrcoef(x, rowvar=False), m.corrcoef(x[0])],
        (A, B),
    ),
}

NAN: dict[str, Case] = {
    "nan_to_num": (lambda m, x: [m.nan_to_num(x), m.nan_to_num(x, nan=3.0, posinf=4.0, neginf=-5.0)], (ODD,)),
    "nan_to_num integers": (lambda m, x: m.nan_to_num(x), (I,)),
    "sums": (lambda m, x: [m.nansum(x), m.nansum(x, 0), m.nansum(x, 1, keepdims=True), m.nanprod(x, 1)], (N,)),
    "running": (lambda m, x: [m.nancumsum(x), m.nancumsum(x, 1), m.nancumprod(x, 0)], (N,)),
    "means": (lambda m, x: [m.nanmean(x), m.nanmean(x, 1), m.nanvar(x, 1), m.nanstd(x), m.nanvar(x, 0, ddof=1)], (N,)),
    "extremes": (lambda m, x: [m.nanmax(x), m.nanmax(x, 1), m.nanmin(x, 0, keepdims=True)], (N,)),
    "extremes of integers": (lambda m, x: [m.nanmax(x, 1), m.nanmin(x), m.nansum(x), m.nanmean(x, 0)], (I,)),
    "infinities": (lambda m, x: [m.nanvar(x), m.nanmean(x)], (np.array([1, np.inf, 2, np.nan], np.float32),)),
    "complex": (
        lambda m, z: [m.nansum(z), m.nanprod(z, 1), m.nanmean(z, 0), m.nanvar(z), m.nanstd(z, 1), m.nan_to_num(z)],
        ((N + 1j * A).astype(np.complex64),),
    ),
    "places": (lambda m, x: [m.nanargmax(x), m.nanargmax(x, 1), m.nanargmin(x, 0)], (N,)),
}

CALCULUS: dict[str, Case] = {
    "diff": (
        lambda m, x: [
            m.diff(x),
            m.diff(x, 2),
            m.diff(x, axis=0),
            m.diff(x, n=9),
            m.diff(x, 0),
            m.diff(x, prepend=0.0),
            m.diff(x, axis=0, append=x[:2]),
        ],
        (A,),
    ),
    "diff of bools": (lambda m, x: m.diff(x), (M,)),
    "ediff1d": (lambda m, x: [m.ediff1d(x), m.ediff1d(x, to_end=np.float32(9)), m.ediff1d(x, to_begin=x[0])], (A,)),
    "gradient": (
        lambda m, x, v, d: [
            *m.gradient(x),
            *m.gradient(x, 2.0),
            *m.gradient(x, 0.5, 3.0),
            m.gradient(v),
            m.gradient(x, axis=0),
            m.gradient(v, edge_order=2),
            *m.gradient(d, axis=(0, 2)),
            m.gradient(v, np.array([0.0, 1, 1.5, 3, 4, 8, 9], "f4")),
            m.gradient(x, np.array([0.0, 1, 1.5, 3, 4, 8], "f4"), axis=1),
        ],
        (A, V, D),
    ),
    "trapezoid": (
        lambda m, x, w: [
            m.trapezoid(x),
            m.trapezoid(x, dx=0.5, axis=0),
            m.trapezoid(x, w[0], axis=1),
            m.trapezoid(x, w, axis=0),
        ],
        (A, np.cumsum(POS, 1).astype("f4")),
    ),
    "unwrap": (
        lambda m, x: [m.unwrap(x), m.unwrap(x, axis=0), m.unwrap(x, period=4.0), m.unwrap(x, discont=4.0)],
        (ANGLES,),
    ),
    "interp": (
        lambda m, x, a, f: [
            m.interp(x, a, f),
            m.interp(x, a, f, left=-9.0, right=9.0),
            m.interp(0.1, a, f),
            m.interp(x * 3, a, f, period=2.5),
            m.interp(a, a, f),
            m.interp(x, a[:1], f[:1]),
        ],
        (A, SORTED, RANDOM.standard_normal(9).astype("f4")),
    ),
    "convolve": (
        lambda m, x, y: [
            m.convolve(x, y),
            m.convolve(x, y, "same"),
            m.convolve(x, y, mode="valid"),
            m.convolve(y, x),
            m.convolve(y, x, "same"),
            m.convolve(x, y[:2], "same"),
        ],
        (V, W),
    ),
    "convolve integers": (lambda m, x: m.convolve(x[0], x[1]), (I,)),
    "convolve complex": (lambda m, x: [m.convolve(x[0], x[1]), m.correlate(x[0], x[1], "full")], (Z,)),
    "correlate": (
        lambda m, x, y: [
            m.correlate(x, y),
            m.correlate(x, y, "same"),
            m.correlate(x, y, mode="full"),
            m.correlate(y, x, "full"),
            m.correlate(y[:2], x, "same"),
            m.correlate(x, y[:2], "same"),
        ],
        (V, W),
    ),
    "polyval": (lambda m, p, x: [m.polyval(p, x), m.polyval(p[:1], x), m.polyval(p, 2.0)], (W, A)),
    "vander": (lambda m, x: [m.vander(x), m.vander(x, 4), m.vander(x, 2, increasing=True)], (W,)),
    "cross": (
        lambda m, x, y: [m.cross(x, y), m.cross(x.T, y.T, axis=0), m.cross(x[0], y)],
        (A[:, :3].copy(), B[:, :3].copy()),
    ),
    "vdot": (
        lambda m, x, y, z: [m.vdot(x, y), m.vdot(z, x), m.vecdot(z, z), m.inner(x, y), m.outer(x[0], y[0])],
        (A, B, Z),
    ),
}

ELEMENTWISE: dict[str, Case] = {
    "heaviside": (lambda m, x: [m.heaviside(x, 0.5), m.heaviside(x, x[::-1])], (STEPS,)),
    "sinc": (lambda m, x: [m.sinc(x), m.sinc(x * 0)], (A,)),
    "i0": (lambda m, x: [m.i0(x), m.i0(x * 8)], (A,)),
    "angles": (lambda m, x: [m.degrees(x), m.radians(x), m.deg2rad(x), m.rad2deg(x)], (A,)),
    "fmax": (lambda m, x, y: [m.fmax(x, y), m.fmin(x, y), m.fmax(y, x)], (N, np.roll(N, 1))),
    "fmod": (lambda m, x, y: [m.fmod(x, y), *m.divmod(x, y)], (A, B)),
    "fmod integers": (lambda m, x: [m.fmod(x, 4), *m.divmod(x, 4)], (I,)),
    "parts": (lambda m, x: [*m.modf(x), m.fix(x), m.rint(x * 2), m.around(x, 1), m.fabs(x)], (A,)),
    "modf odd": (lambda m, x: [*m.modf(x)], (ODD,)),
    "powers": (lambda m, x, y: [m.float_power(x, 3.0).astype("f4"), m.logaddexp2(x, y)], (POS, B)),
    "nextafter": (lambda m, x, y: m.nextafter(x, y), (A, B)),
    "spaces": (
        lambda m: [
            m.logspace(0, 2, 5),
            m.logspace(0, 3, 4, base=2.0, endpoint=False),
            m.geomspace(1, 1000, 4),
            m.geomspace(-8.0, -1.0, 3),
            m.geomspace(2.0, 32.0, 4, endpoint=False),
            m.geomspace(3.0, 9.0, 1),
        ],
        (),
    ),
}

TABLES = (STATISTICS, NAN, CALCULUS, ELEMENTWISE)
