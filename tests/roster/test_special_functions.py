"""Special functions over their ranges and far into their tails, against SciPy and closed forms.

Numbers in parentheses are equations of the NIST Digital Library of Mathematical Functions (DLMF).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from tests.roster.support import finite_differences

EPSILON = float(np.finfo(np.float64).eps)

# Values good to a few units in the last place on either side, with a margin of ten.
CLOSE = 1e-14
# Series and continued fractions of up to a few hundred terms.
SERIES = 1e-11

# All grids have one size, so that a function is compiled once.
COUNT = 100

Array = NDArray[np.float64]


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


class Case(NamedTuple):
    """One function of one variable: its grid, and how closely SciPy's values are met.

    `absolute` is for functions that cross zero: there the relative error says nothing.
    """

    name: str
    grid: Callable[[], Array]
    relative: float = CLOSE
    absolute: float = 0.0


def linear(start: float, stop: float) -> Callable[[], Array]:
    return lambda: np.linspace(start, stop, COUNT)


def powers(start: float, stop: float) -> Callable[[], Array]:
    return lambda: np.logspace(start, stop, COUNT)


CASES = {
    "gammaln-small": Case("gammaln", powers(-12, 0), CLOSE, CLOSE),
    "gammaln-moderate": Case("gammaln", linear(0.1, 30), CLOSE, CLOSE),
    "gammaln-large": Case("gammaln", powers(1, 15)),
    "gammaln-between-poles": Case("gammaln", linear(-9.95, -0.05), 10 * CLOSE, 10 * CLOSE),
    "digamma-small": Case("digamma", powers(-12, 0), CLOSE, CLOSE),
    "digamma-moderate": Case("digamma", linear(0.1, 30), CLOSE, CLOSE),
    # The reflection formula divides by tan(pi x): an ulp of pi x is amplified near the poles.
    "digamma-between-poles": Case("digamma", linear(-9.95, -0.05), 1e-12, 1e-12),
    "erf": Case("erf", linear(-6, 6)),
    "erfc-to-the-smallest-normal": Case("erfc", linear(-6, 26.5)),
    "erfinv": Case("erfinv", linear(-0.99, 0.99)),
    "ndtr-left-tail": Case("ndtr", linear(-37, 8)),
    "ndtri-left-tail": Case("ndtri", powers(-300, -0.01)),
    "log-ndtr-left": Case("log_ndtr", linear(-19.9, 0)),
    # The logarithm of a number next to 1: absolute accuracy is what the algorithm has here.
    "log-ndtr-right": Case("log_ndtr", linear(0, 8), CLOSE, 4 * EPSILON),
    "log-ndtr-far-right": Case("log_ndtr", linear(8.5, 37)),
    "expit-both-tails": Case("expit", linear(-700, 700)),
    "logit-left-tail": Case("logit", powers(-300, -0.5)),
    "i0e": Case("i0e", linear(-800, 800)),
    "i1e": Case("i1e", linear(-800, 800)),
    "exp1": Case("exp1", powers(-6, 2)),
}


@pytest.mark.parametrize("case", CASES)
def test_values_match_scipy(case: str) -> None:
    name, grid, relative, absolute = CASES[case]
    x = grid()
    values, expected = getattr(jax.scipy.special, name)(x), getattr(special, name)(x)
    np.testing.assert_allclose(values, expected, rtol=relative, atol=absolute)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_polygamma_matches_scipy(order: int) -> None:
    x = np.linspace(0.1, 50.0, COUNT)
    values = jax.scipy.special.polygamma(order, x)
    np.testing.assert_allclose(values, special.polygamma(order, x), rtol=10 * CLOSE)


def test_log_ndtr_in_the_far_left_tail_errs_by_the_term_it_leaves_out() -> None:
    """(7.12.1), of which three terms are used by default: the fourth is 105 / x**8."""
    x = -np.logspace(np.log10(20.5), 8, COUNT)
    expected = special.log_ndtr(x)
    error = np.abs(np.asarray(jax.scipy.special.log_ndtr(x)) - expected)
    assert np.all(error <= 105.0 / x**8 + CLOSE * np.abs(expected))


@pytest.mark.parametrize("x", [-1e6, -1e100, -1e150])
def test_log_ndtr_is_quadratic_at_the_end_of_its_range(x: float) -> None:
    """(7.12.1): beyond the parabola and a logarithm nothing is left in double precision."""
    expected = -0.5 * x * x - math.log(-x) - 0.5 * math.log(2 * math.pi)
    assert float(jax.scipy.special.log_ndtr(x)) == pytest.approx(expected, rel=CLOSE)


@pytest.mark.parametrize("x", [-15.0, -40.0, -1e4])
def test_the_slope_of_log_ndtr_in_its_tail_is_the_inverse_mills_ratio(x: float) -> None:
    """phi(x) / Phi(x) through erfcx; the quotient is formed from logarithms of size x**2 / 2."""
    expected = math.sqrt(2 / math.pi) / special.erfcx(-x / math.sqrt(2.0))
    slope = float(jax.grad(jax.scipy.special.log_ndtr)(x))
    left_out = 105.0 / x**8 if x < -20.0 else 0.0
    assert slope == pytest.approx(expected, rel=4 * EPSILON * x * x + left_out)


@pytest.mark.parametrize("x", [1e3, 1e8, 1e100, 1e300])
def test_gammaln_follows_stirlings_series(x: float) -> None:
    """(5.11.1), two terms of the series: the third is below 1e-18 from 1000 on."""
    expected = (x - 0.5) * math.log(x) - x + 0.5 * math.log(2 * math.pi) + 1 / (12 * x)
    expected -= 1 / (360 * x**3) if x < 1e100 else 0.0
    assert float(jax.scipy.special.gammaln(x)) == pytest.approx(expected, rel=CLOSE)


@pytest.mark.parametrize("n", [1, 2, 5, 20, 170])
def test_gammaln_of_an_integer_is_a_factorial(n: int) -> None:
    expected = math.log(math.factorial(n - 1))
    value = float(jax.scipy.special.gammaln(float(n)))
    assert value == pytest.approx(expected, rel=CLOSE, abs=CLOSE)


@pytest.mark.parametrize("x", [0.1, 0.25, 0.8, 3.6])
def test_digamma_obeys_reflection_and_recurrence(x: float) -> None:
    """(5.5.4) and (5.5.2)."""
    psi = jax.scipy.special.digamma
    reflected = float(psi(1.0 - x) - psi(x)) * math.tan(math.pi * x)
    assert reflected == pytest.approx(math.pi, rel=1e-12)
    assert float(psi(x + 1.0) - psi(x)) == pytest.approx(1.0 / x, rel=1e-12)


@pytest.mark.parametrize("shape", [0.01, 0.5, 3.0, 40.0, 200.0])
def test_incomplete_gamma_functions_match_scipy_and_add_to_one(shape: float) -> None:
    x = shape * np.concatenate([np.logspace(-3, 0, COUNT // 2), np.linspace(1.1, 4, COUNT // 2)])
    lower = jax.scipy.special.gammainc(shape, x)
    upper = jax.scipy.special.gammaincc(shape, x)
    np.testing.assert_allclose(lower, special.gammainc(shape, x), rtol=SERIES)
    np.testing.assert_allclose(upper, special.gammaincc(shape, x), rtol=SERIES)
    np.testing.assert_allclose(lower + upper, 1.0, rtol=SERIES)


def test_incomplete_gamma_of_shape_one_is_the_exponential() -> None:
    """(8.4.9) and (8.4.10) at n = 0."""
    x = np.logspace(-10, 2.8, COUNT)
    lower, upper = jax.scipy.special.gammainc(1.0, x), jax.scipy.special.gammaincc(1.0, x)
    np.testing.assert_allclose(lower, -np.expm1(-x), rtol=1e-12)
    np.testing.assert_allclose(upper, np.exp(-x), rtol=1e-12)


@pytest.mark.parametrize("b", [0.1, 2.0, 30.0, 500.0])
@pytest.mark.parametrize("a", [0.1, 1.0, 20.0])
def test_incomplete_beta_matches_scipy_and_its_mirror(a: float, b: float) -> None:
    """The mirror is (8.17.4). The absolute part is for values that underflow."""
    x = np.linspace(0.01, 0.99, COUNT)
    value = jax.scipy.special.betainc(a, b, x)
    np.testing.assert_allclose(value, special.betainc(a, b, x), rtol=SERIES, atol=1e-300)
    np.testing.assert_allclose(1.0 - jax.scipy.special.betainc(b, a, 1.0 - x), value, atol=SERIES)


@pytest.mark.parametrize("b", [1e-6, 0.5, 7.0, 1e4])
def test_betaln_with_a_unit_argument_is_a_logarithm(b: float) -> None:
    """B(1, b) = 1/b; two log-gammas of about b log b cancel."""
    expected = -math.log(b)
    absolute = 8 * EPSILON * (1.0 + abs(b * math.log(b)))
    value = float(jax.scipy.special.betaln(1.0, b))
    assert value == pytest.approx(expected, rel=CLOSE, abs=absolute)


@pytest.mark.parametrize("shift", [-1e300, -1e5, -800.0, 0.0, 800.0, 1e5])
def test_logsumexp_moves_with_its_arguments(shift: float) -> None:
    x = np.array([0.0, -1.0, 2.5, -40.0])
    expected = shift + math.log(np.exp(x).sum())
    value = float(jax.scipy.special.logsumexp(x + shift))
    assert value == pytest.approx(expected, rel=CLOSE, abs=CLOSE)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([-np.inf, -np.inf], -np.inf),
        ([-np.inf, 3.0], 3.0),
        ([np.inf, 3.0], np.inf),
        ([-5000.0, -5000.0], -5000.0 + math.log(2.0)),
    ],
    ids=["nothing", "one", "infinite", "underflowing"],
)
def test_logsumexp_of_extremes(values: list[float], expected: float) -> None:
    assert float(jax.scipy.special.logsumexp(np.array(values))) == expected


def test_signed_logsumexp_subtracts() -> None:
    weights = np.array([1.0, -2.0])
    value, sign = jax.scipy.special.logsumexp(
        np.array([1000.0, 1000.0]), b=weights, return_sign=True
    )
    assert (float(value), float(sign)) == (1000.0, -1.0)


def test_small_arguments_keep_their_digits() -> None:
    """The first two terms of the series: the third is below 1e-20 relative."""
    x = np.logspace(-300, -10, 30)
    np.testing.assert_allclose(jnp.log1p(x), x - x * x / 2.0, rtol=CLOSE)
    np.testing.assert_allclose(jnp.expm1(x), x + x * x / 2.0, rtol=CLOSE)


def test_zero_times_a_logarithm_of_zero_is_zero_with_a_gradient() -> None:
    xlogy = jax.scipy.special.xlogy
    assert float(xlogy(0.0, 0.0)) == 0.0
    assert float(jax.grad(xlogy, argnums=1)(0.0, 2.0)) == 0.0
    assert float(jax.grad(xlogy)(3.0, 2.0)) == pytest.approx(math.log(2.0), rel=CLOSE)


SLOPES: dict[str, tuple[Callable[..., jax.Array], float, float]] = {
    "gammaln": (lambda x: jax.scipy.special.gammaln(x), 3.3, special.digamma(3.3)),
    "digamma": (lambda x: jax.scipy.special.digamma(x), 3.3, special.polygamma(1, 3.3)),
    "erf": (lambda x: jax.scipy.special.erf(x), 1.2, 2 / math.sqrt(math.pi) * math.exp(-1.44)),
    "erfc-tail": (
        lambda x: jax.scipy.special.erfc(x),
        25.0,
        -2 / math.sqrt(math.pi) * math.exp(-625.0),
    ),
    "gammainc": (
        lambda x: jax.scipy.special.gammainc(2.5, x),
        1.7,
        1.7**1.5 * math.exp(-1.7) / math.gamma(2.5),
    ),
    "betainc": (
        lambda x: jax.scipy.special.betainc(2.5, 0.7, x),
        0.4,
        0.4**1.5 * 0.6**-0.3 / special.beta(2.5, 0.7),
    ),
    "expit-tail": (lambda x: jax.scipy.special.expit(x), -600.0, math.exp(-600.0)),
}


@pytest.mark.parametrize("name", sorted(SLOPES))
def test_slopes_have_their_closed_forms(name: str) -> None:
    function, x, expected = SLOPES[name]
    assert float(jax.grad(function)(x)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("shape", "x"), [(0.7, 0.3), (2.5, 1.7), (8.0, 11.0)])
def test_the_slope_of_gammainc_in_its_shape_matches_finite_differences(
    shape: float, x: float
) -> None:
    expected = finite_differences.directional(lambda a: special.gammainc(a, x), shape, 1.0)
    slope = float(jax.grad(jax.scipy.special.gammainc)(shape, x))
    assert slope == pytest.approx(expected, abs=finite_differences.TOLERANCE)
