"""Factorisations, solves and their derivatives against NumPy, SciPy and matrix calculus.

Tolerances are in units of n * eps, times the condition number where the problem amplifies.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import linalg

from tests.roster.support import finite_differences

EPSILON = float(np.finfo(np.float64).eps)
ROUNDING = 1e-11  # n * eps with a generous constant; the matrices here have condition under 1e3
SIZES = [1, 2, 5, 12]

Matrix = NDArray[np.float64]


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def general(n: int, seed: int = 0) -> Matrix:
    """A random matrix kept away from singularity."""
    return np.random.default_rng(seed + n).normal(size=(n, n)) + 3.0 * np.sqrt(n) * np.eye(n)


def positive(n: int, seed: int = 0) -> Matrix:
    """A symmetric positive definite matrix whose eigenvalues are 1, 2, ..., n."""
    rotation = np.linalg.qr(np.random.default_rng(seed + n).normal(size=(n, n)))[0]
    matrix = rotation @ np.diag(np.arange(1.0, n + 1.0)) @ rotation.T
    return 0.5 * (matrix + matrix.T)


@pytest.mark.parametrize("n", SIZES)
def test_cholesky_matches_scipy(n: int) -> None:
    matrix = positive(n)
    np.testing.assert_allclose(
        jnp.linalg.cholesky(matrix), linalg.cholesky(matrix, lower=True), atol=ROUNDING
    )


def test_cholesky_of_an_indefinite_matrix_is_not_a_number() -> None:
    assert bool(jnp.isnan(jnp.linalg.cholesky(jnp.diag(jnp.array([1.0, -1.0])))).any())


@pytest.mark.parametrize("columns", [None, 1, 3])
@pytest.mark.parametrize("n", SIZES)
def test_solve_matches_scipy(n: int, columns: int | None) -> None:
    matrix = general(n)
    shape = (n,) if columns is None else (n, columns)
    right = np.random.default_rng(1).normal(size=shape)
    solution = jnp.linalg.solve(matrix, right)
    np.testing.assert_allclose(solution, linalg.solve(matrix, right), atol=ROUNDING)


@pytest.mark.parametrize("trans", [0, 1], ids=["plain", "transposed"])
@pytest.mark.parametrize("lower", [True, False], ids=["lower", "upper"])
def test_triangular_solve_matches_scipy(lower: bool, trans: int) -> None:
    """The other triangle holds numbers that must not be read."""
    matrix, right = general(6), np.arange(6.0)
    solution = jax.scipy.linalg.solve_triangular(matrix, right, lower=lower, trans=trans)
    expected = linalg.solve_triangular(matrix, right, lower=lower, trans=trans)
    np.testing.assert_allclose(solution, expected, atol=ROUNDING)


def test_a_factor_is_reused_for_many_right_hand_sides() -> None:
    matrix, right = positive(6), np.random.default_rng(2).normal(size=(6, 4))
    factor = jax.scipy.linalg.cho_factor(matrix, lower=True)
    solution = jax.scipy.linalg.cho_solve(factor, right)
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, right), atol=ROUNDING)


def test_solve_is_backward_stable_on_a_hilbert_matrix() -> None:
    """Higham, Accuracy and Stability, theorem 9.4: a residual of about n * eps * |A| * |x|."""
    n = 10
    matrix = linalg.hilbert(n)
    right = matrix @ np.ones(n)
    solution = np.asarray(jnp.linalg.solve(matrix, right))
    scale = np.linalg.norm(matrix, np.inf) * np.linalg.norm(solution, np.inf)
    residual = np.linalg.norm(matrix @ solution - right, np.inf)
    assert residual < 10 * n * EPSILON * scale


@pytest.mark.parametrize("n", SIZES)
def test_eigh_finds_the_planted_eigenvalues(n: int) -> None:
    matrix = positive(n)
    values, vectors = jnp.linalg.eigh(matrix)
    np.testing.assert_allclose(values, np.arange(1.0, n + 1.0), atol=ROUNDING)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=ROUNDING)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n), atol=ROUNDING)


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 5), (6, 6)], ids=str)
def test_svd_matches_numpy_up_to_signs(shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(3).normal(size=shape)
    u, s, vh = jnp.linalg.svd(matrix, full_matrices=False)
    np.testing.assert_allclose(s, np.linalg.svd(matrix, compute_uv=False), atol=ROUNDING)
    np.testing.assert_allclose((u * s) @ vh, matrix, atol=ROUNDING)
    np.testing.assert_allclose(u.T @ u, np.eye(s.size), atol=ROUNDING)
    np.testing.assert_allclose(vh @ vh.T, np.eye(s.size), atol=ROUNDING)


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 5), (6, 6)], ids=str)
def test_qr_matches_numpy_up_to_signs(shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(4).normal(size=shape)
    q, r = jnp.linalg.qr(matrix)
    np.testing.assert_allclose(np.abs(r), np.abs(np.linalg.qr(matrix).R), atol=ROUNDING)
    np.testing.assert_allclose(q @ r, matrix, atol=ROUNDING)
    np.testing.assert_allclose(q.T @ q, np.eye(min(shape)), atol=ROUNDING)
    np.testing.assert_array_equal(np.tril(r, -1), np.zeros(r.shape))


@pytest.mark.parametrize("flips", [0, 1, 2])
def test_slogdet_matches_numpy_with_its_sign(flips: int) -> None:
    matrix = general(5)
    matrix[:flips] *= -1.0
    sign, value = jnp.linalg.slogdet(matrix)
    assert float(sign) == (-1.0) ** flips
    assert float(value) == pytest.approx(np.linalg.slogdet(matrix)[1], rel=ROUNDING)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_slogdet_survives_where_the_determinant_does_not(scale: float) -> None:
    sign, value = jnp.linalg.slogdet(scale * np.diag([1.0, -2.0, 3.0]))
    assert float(sign) == -1.0
    assert float(value) == pytest.approx(np.log(6.0) + 3.0 * np.log(scale), rel=ROUNDING)


def test_matrix_exponential_matches_scipy() -> None:
    matrix = np.random.default_rng(5).normal(size=(5, 5))
    exponential = jax.jit(jax.scipy.linalg.expm)(matrix)
    np.testing.assert_allclose(exponential, linalg.expm(matrix), rtol=ROUNDING, atol=ROUNDING)


def test_least_squares_satisfies_the_normal_equations() -> None:
    generator = np.random.default_rng(6)
    matrix, right = generator.normal(size=(9, 3)), generator.normal(size=9)
    solution, *_ = jnp.linalg.lstsq(matrix, right)
    np.testing.assert_allclose(solution, np.linalg.pinv(matrix) @ right, atol=ROUNDING)


@pytest.mark.parametrize("name", ["cholesky", "inv", "eigvalsh", "det"])
def test_a_batch_is_its_parts(name: str) -> None:
    batch = np.stack([positive(4, seed) for seed in range(3)])
    together = getattr(jnp.linalg, name)(batch)
    alone = np.stack([getattr(np.linalg, name)(matrix) for matrix in batch])
    np.testing.assert_allclose(together, alone, atol=ROUNDING)


@pytest.mark.parametrize("name", ["cholesky", "inv", "eigvalsh"])
def test_single_precision_stays_single_and_accurate_to_its_own_epsilon(name: str) -> None:
    """Condition 6, n = 6: a hundred epsilons of single precision are ample."""
    matrix = positive(6)
    result = getattr(jnp.linalg, name)(matrix.astype(np.float32))
    assert result.dtype == np.float32
    tolerance = 100 * float(np.finfo(np.float32).eps)
    np.testing.assert_allclose(result, getattr(np.linalg, name)(matrix), atol=tolerance)


def test_the_gradient_of_the_log_determinant_is_the_inverse_transposed() -> None:
    matrix = general(5)
    gradient = jax.grad(lambda m: jnp.linalg.slogdet(m)[1])(matrix)
    np.testing.assert_allclose(gradient, np.linalg.inv(matrix).T, atol=ROUNDING)


def test_the_gradient_of_the_determinant_obeys_jacobis_formula() -> None:
    matrix = general(4)
    expected = np.linalg.det(matrix) * np.linalg.inv(matrix).T
    np.testing.assert_allclose(jax.grad(jnp.linalg.det)(matrix), expected, rtol=ROUNDING)


def test_the_gradients_of_a_solve_are_outer_products() -> None:
    """For u.x with A x = b: with y = inv(A)^T u, d/db = y and d/dA = -y x^T."""
    matrix, right, u = general(5), np.arange(5.0), np.cos(np.arange(5.0))
    gradients = jax.grad(lambda a, b: u @ jnp.linalg.solve(a, b), argnums=(0, 1))(matrix, right)
    x, y = np.linalg.solve(matrix, right), np.linalg.solve(matrix.T, u)
    np.testing.assert_allclose(gradients[0], -np.outer(y, x), atol=ROUNDING)
    np.testing.assert_allclose(gradients[1], y, atol=ROUNDING)


@pytest.mark.parametrize("index", [0, 2, 4])
def test_the_gradient_of_an_eigenvalue_is_the_projector_on_its_vector(index: int) -> None:
    matrix = positive(5)
    gradient = jax.grad(lambda m: jnp.linalg.eigvalsh(m)[index])(matrix)
    vector = np.linalg.eigh(matrix)[1][:, index]
    np.testing.assert_allclose(gradient, np.outer(vector, vector), atol=ROUNDING)


def test_the_gradient_of_the_largest_singular_value_is_an_outer_product() -> None:
    matrix = np.random.default_rng(7).normal(size=(5, 3))
    gradient = jax.grad(lambda m: jnp.linalg.svd(m, compute_uv=False)[0])(matrix)
    u, _, vh = np.linalg.svd(matrix)
    np.testing.assert_allclose(gradient, np.outer(u[:, 0], vh[0]), atol=ROUNDING)


@pytest.mark.parametrize("name", ["cholesky", "inv", "qr", "expm"])
def test_derivatives_match_finite_differences(name: str) -> None:
    functions = {
        "cholesky": lambda m: jnp.linalg.cholesky(0.5 * (m + m.T)),
        "inv": jnp.linalg.inv,
        "qr": lambda m: jnp.linalg.qr(m)[1],
        "expm": jax.scipy.linalg.expm,
    }
    function = jax.jit(functions[name])
    matrix, direction = positive(4), np.random.default_rng(8).normal(size=(4, 4))
    matrix = matrix / 2.0 if name == "expm" else matrix
    _, tangent = jax.jvp(function, (matrix,), (direction,))
    expected = finite_differences.directional(function, matrix, direction)
    # Fifth derivatives along the direction reach a few hundred times the value.
    np.testing.assert_allclose(tangent, expected, atol=100 * finite_differences.TOLERANCE)
