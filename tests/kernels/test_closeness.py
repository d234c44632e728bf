"""The judge itself: what it must let pass and what it must not."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from gspmd.kernels.closeness import compare

F32 = np.float32


def test_equal_arrays_are_equal() -> None:
    for x in (np.arange(5), np.array([True]), np.array([np.nan, np.inf, -0.0]), np.array([1 + 2j]), np.empty((0, 3))):
        assert compare(x, x)
        assert compare(x, x, exact=True)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (np.array([1, 2]), np.array([1, 3])),
        (np.array([True]), np.array([False])),
        (np.ones(3, F32), np.ones(3)),
        (np.ones((3, 1)), np.ones(3)),
        (np.array([np.nan]), np.array([1.0])),
        (np.array([1.0]), np.array([np.nan])),
        (np.array([np.inf]), np.array([-np.inf])),
        (np.array([1e300]), np.array([np.inf])),
        (np.array([1.0, 1.001], F32), np.array([1.0, 1.0], F32)),
        (np.array([1 + 1j]), np.array([1 - 1j])),
    ],
)
def test_what_differs_is_told(actual: np.ndarray, expected: np.ndarray) -> None:
    verdict = compare(actual, expected)
    assert not verdict
    assert verdict.message


def test_exact_tells_the_sign_of_zero_and_the_last_bit() -> None:
    assert not compare(np.array([0.0]), np.array([-0.0]), exact=True)
    assert not compare(np.array([complex(0.0, -0.0)]), np.array([complex(0.0, 0.0)]), exact=True)
    assert not compare(np.array([1.0], F32), np.nextafter(np.array([1.0], F32), F32(2)), exact=True)
    assert compare(np.array([0.0]), np.array([-0.0]))
    assert compare(np.array([1.0], F32), np.nextafter(np.array([1.0], F32), F32(2)))


def test_the_bound_grows_with_magnitude_terms_and_step() -> None:
    zero, near = np.zeros(1, F32), np.full(1, 1e-5, F32)
    assert not compare(near, zero)
    assert compare(near, zero, magnitude=100.0)
    assert not compare(near, zero, magnitude=1.0)
    assert compare(near, zero, magnitude=1.0, terms=1000)
    assert compare(near, zero, magnitude=1.0, scale_dtype=ml_dtypes.bfloat16)


def test_an_infinite_expectation_does_not_excuse_its_row() -> None:
    assert not compare(np.array([np.inf, 5.0]), np.array([np.inf, 1.0]))


def test_the_message_names_the_worst_place() -> None:
    verdict = compare(np.array([[1.0, 2.0], [3.0, 9.0]]), np.array([[1.0, 2.5], [3.0, 4.0]]))
    assert "2 of 4" in verdict.message and "[1, 1]" in verdict.message
    assert verdict.max_error == 5.0
