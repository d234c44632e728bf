"""The error function, which NumPy lacks: rational approximations on four intervals, below one unit in the last place.

The intervals and coefficients are those of FreeBSD's msun (Sun Microsystems 1993, freely usable with this notice).
"""

from __future__ import annotations

import numpy as np

from gspmd.kernels.finite import F64, Array

_ERX = 8.45062911510467529297e-01
# Numerators and denominators, highest power first, in x*x, |x|-1, 1/x^2 and 1/x^2.
_PP = (
    -2.37630166566501626084e-05,
    -5.77027029648944159157e-03,
    -2.84817495755985104766e-02,
    -3.25042107247001499370e-01,
    1.28379167095512558561e-01,
)
_QQ = (
    -3.96022827877536812320e-06,
    1.32494738004321644526e-04,
    5.08130628187576562776e-03,
    6.50222499887672944485e-02,
    3.97917223959155352819e-01,
    1.0,
)
_PA = (
    -2.16637559486879084300e-03,
    3.54783043256182359371e-02,
    -1.10894694282396677476e-01,
    3.18346619901161753674e-01,
    -3.72207876035701323847e-01,
    4.14856118683748331666e-01,
    -2.36211856075265944077e-03,
)
_QA = (
    1.19844998467991074170e-02,
    1.36370839120290507362e-02,
    1.26171219808761642112e-01,
    7.18286544141962662868e-02,
    5.40397917702171048937e-01,
    1.06420880400844228286e-01,
    1.0,
)
_RA = (
    -9.81432934416914548592e00,
    -8.12874355063065934246e01,
    -1.84605092906711035994e02,
    -1.62396669462573470355e02,
    -6.23753324503260060396e01,
    -1.05586262253232909814e01,
    -6.93858572707181764372e-01,
    -9.86494403484714822705e-03,
)
_SA = (
    -6.04244152148580987438e-02,
    6.57024977031928170135e00,
    1.08635005541779435134e02,
    4.29008140027567833386e02,
    6.45387271733267880336e02,
    4.34565877475229228821e02,
    1.37657754143519042600e02,
    1.96512716674392571292e01,
    1.0,
)
_RB = (
    -4.83519191608651397019e02,
    -1.02509513161107724954e03,
    -6.37566443368389627722e02,
    -1.60636384855821916062e02,
    -1.77579549177547519889e01,
    -7.99283237680523006574e-01,
    -9.86494292470009928597e-03,
)
_SB = (
    -2.24409524465858183362e01,
    4.74528541206955367215e02,
    2.55305040643316442583e03,
    3.19985821950859553908e03,
    1.53672958608443695994e03,
    3.25792512996573918826e02,
    3.03380607434824582924e01,
    1.0,
)


def erf(x: Array) -> Array:
    """The error function of a real array, computed in f64 and rounded to the array's dtype."""
    with np.errstate(all="ignore"):
        wide = np.reshape(x, -1).astype(F64, copy=False)
        size = np.abs(wide)
        out = _polynomial(_PP, size * size) / _polynomial(_QQ, size * size)
        out = wide + wide * out
        middle = (size >= 0.84375) & (size < 1.25)
        if middle.any():
            s = size[middle] - 1
            out[middle] = np.copysign(_ERX + _polynomial(_PA, s) / _polynomial(_QA, s), wide[middle])
        for low, high, top, bottom in ((1.25, 1 / 0.35, _RA, _SA), (1 / 0.35, 6.0, _RB, _SB)):
            part = (size >= low) & (size < high)
            if part.any():
                out[part] = np.copysign(1 - _tail(size[part], top, bottom), wide[part])
        out = np.where(size >= 6, np.sign(wide), out)
    return out.astype(x.dtype).reshape(x.shape)


def _tail(size: Array, top: tuple[float, ...], bottom: tuple[float, ...]) -> Array:
    """The complement 1 - erf for large arguments; the exponent is split so that its rounding does not show."""
    square = 1 / (size * size)
    head = (size.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)
    ratio = _polynomial(top, square) / _polynomial(bottom, square)
    return np.exp(-head * head - 0.5625) * np.exp((head - size) * (head + size) + ratio) / size


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    total = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        total = total * x + c
    return total
