"""The parts of Hamiltonian Monte Carlo: leapfrog, kinetic energy and the warm-up's estimators."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from numpyro.infer.hmc_util import (
    IntegratorState,
    build_adaptation_schedule,
    dual_averaging,
    euclidean_kinetic_energy,
    find_reasonable_step_size,
    velocity_verlet,
    welford_covariance,
)

from tests.roster.support.compiled import compiled

SEED = 71


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def quartic(position: jax.Array) -> jax.Array:
    """A smooth potential that is not quadratic, so that no symmetry hides an error term."""
    return jnp.sum(0.25 * position**4 + 0.5 * position**2) + 0.3 * position[0] * position[1]


def inverse_mass() -> np.ndarray:
    return np.array([[1.0, 0.3], [0.3, 0.7]])


def flow(
    potential: Callable[[jax.Array], jax.Array], step: float, count: int
) -> Callable[[jax.Array, jax.Array], IntegratorState]:
    """Return the map over `count` leapfrog steps from (position, momentum) to the end state."""
    start, update = velocity_verlet(potential, euclidean_kinetic_energy)

    def run(position: jax.Array, momentum: jax.Array) -> IntegratorState:
        mass = jnp.asarray(inverse_mass())
        state = start(position, momentum)
        return jax.lax.fori_loop(0, count, lambda _, s: update(step, mass, s), state)

    return run


def energy(position: jax.Array, momentum: jax.Array) -> jax.Array:
    return quartic(position) + euclidean_kinetic_energy(jnp.asarray(inverse_mass()), momentum)


def initial_state() -> tuple[np.ndarray, np.ndarray]:
    return np.array([0.8, -0.5]), np.array([0.3, 1.1])


def test_leapfrog_runs_backwards_when_the_momentum_is_flipped() -> None:
    position, momentum = initial_state()

    def there_and_back(q: jax.Array, p: jax.Array) -> tuple[jax.Array, jax.Array]:
        there = flow(quartic, 0.1, 50)(q, p)
        back = flow(quartic, 0.1, 50)(there.z, -there.r)
        return back.z, -back.r

    end = compiled(there_and_back, position, momentum)
    # A hundred steps of rounding on numbers of order one, in a flow that hardly spreads.
    np.testing.assert_allclose(end[0], position, atol=1e-12)
    np.testing.assert_allclose(end[1], momentum, atol=1e-12)


def test_leapfrog_keeps_phase_space_volume() -> None:
    state = np.concatenate(initial_state())

    def phase_map(joined: jax.Array) -> jax.Array:
        end = flow(quartic, 0.3, 7)(joined[:2], joined[2:])
        return jnp.concatenate([end.z, end.r])

    jacobian = compiled(jax.jacfwd(phase_map), state)
    assert np.linalg.det(jacobian) == pytest.approx(1.0, abs=1e-11)
    symplectic = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])
    np.testing.assert_allclose(jacobian.T @ symplectic @ jacobian, symplectic, atol=1e-11)


def test_energy_error_falls_with_the_square_of_the_step() -> None:
    position, momentum = initial_state()

    def error(step: float, count: int) -> float:
        end = compiled(flow(quartic, step, count), position, momentum)
        return float(energy(end.z, end.r) - energy(position, momentum))

    errors = np.array([error(0.04, 25), error(0.02, 50), error(0.01, 100)])
    # The next term of the modified energy is of order h^4: h^2 = 1.6e-3 relative to the first.
    np.testing.assert_allclose(errors[:-1] / errors[1:], 4.0, rtol=0.01)


def test_harmonic_oscillator_conserves_its_shadow_energy() -> None:
    """Leapfrog on q^2/2 + p^2/2 keeps p^2 + (1 - h^2/4) q^2 exactly (Leimkuhler, Reich 2004)."""
    step = 0.9
    start, update = velocity_verlet(lambda q: 0.5 * jnp.sum(q**2), euclidean_kinetic_energy)

    def trajectory(q: jax.Array, p: jax.Array) -> tuple[jax.Array, jax.Array]:
        def advance(state: IntegratorState, _: None) -> tuple[IntegratorState, tuple]:
            state = update(step, jnp.ones(1), state)
            return state, (state.z, state.r)

        return jax.lax.scan(advance, start(q, p), length=500)[1]

    positions, momenta = compiled(trajectory, np.array([1.0]), np.array([0.2]))
    shadow = momenta**2 + (1.0 - step**2 / 4.0) * positions**2
    np.testing.assert_allclose(shadow, 0.2**2 + (1.0 - step**2 / 4.0), rtol=1e-12)
    # The true energy is not kept at this step, or the test would tell nothing.
    assert np.ptp(momenta**2 + positions**2) > 0.1


@pytest.mark.parametrize(
    ("step", "bounded"),
    [pytest.param(1.99, True, id="below"), pytest.param(2.01, False, id="above")],
)
def test_leapfrog_is_stable_up_to_a_step_of_two(step: float, bounded: bool) -> None:
    start, update = velocity_verlet(lambda q: 0.5 * jnp.sum(q**2), euclidean_kinetic_energy)

    def run(q: jax.Array, p: jax.Array) -> IntegratorState:
        mass = jnp.ones(1)
        return jax.lax.fori_loop(0, 400, lambda _, s: update(step, mass, s), start(q, p))

    end = compiled(run, np.array([1.0]), np.array([0.2]))
    # Growth above the limit is exp(400 * 2 asinh(sqrt(h^2/4 - 1))), about e^80.
    assert bool(abs(end.z[0]) < 100.0) is bounded


@pytest.mark.parametrize(
    "mass",
    [
        pytest.param(np.array([2.0, 0.5, 1.5]), id="diagonal"),
        pytest.param(np.array([[2.0, 0.3, 0.0], [0.3, 0.5, 0.1], [0.0, 0.1, 1.5]]), id="dense"),
    ],
)
def test_kinetic_energy_of_a_tree_is_the_quadratic_form(mass: np.ndarray) -> None:
    momentum = {"a": jnp.array([0.5, -1.0]), "b": jnp.array(2.0)}
    flat = np.asarray(ravel_pytree(momentum)[0])
    dense = np.diag(mass) if mass.ndim == 1 else mass
    expected = 0.5 * flat @ dense @ flat
    np.testing.assert_allclose(euclidean_kinetic_energy(jnp.asarray(mass), momentum), expected)


@pytest.mark.parametrize("diagonal", [True, False], ids=["diagonal", "dense"])
def test_welford_agrees_with_numpy(diagonal: bool) -> None:
    samples = np.random.default_rng(5).normal(size=(200, 3)) * [1.0, 3.0, 0.5] + [0.0, 1e3, -5.0]
    start, update, finish = welford_covariance(diagonal=diagonal)

    def run(values: jax.Array) -> tuple[jax.Array, ...]:
        state, _ = jax.lax.scan(lambda s, x: (update(x, s), None), start(3), values)
        return finish(state)

    covariance, inverse_root, root = compiled(run, samples)
    expected = np.cov(samples.T)
    if diagonal:
        np.testing.assert_allclose(covariance, np.diag(expected), rtol=1e-11)
        np.testing.assert_allclose(root * inverse_root, 1.0, rtol=1e-14)
    else:
        np.testing.assert_allclose(covariance, expected, rtol=1e-9, atol=1e-9)
        precision = inverse_root @ inverse_root.T
        np.testing.assert_allclose(precision @ expected, np.eye(3), atol=1e-9)
        np.testing.assert_allclose(root @ inverse_root, np.eye(3), atol=1e-12)


def test_regularised_welford_shrinks_as_stan_does() -> None:
    """n/(n+5) of the estimate plus 5/(n+5) of 1e-3 (Stan reference manual, adaptation)."""
    samples = np.random.default_rng(6).normal(size=(20, 2))
    start, update, finish = welford_covariance(diagonal=True)

    def run(values: jax.Array) -> jax.Array:
        state, _ = jax.lax.scan(lambda s, x: (update(x, s), None), start(2), values)
        return finish(state, regularize=True)[0]

    expected = 20 / 25 * samples.var(axis=0, ddof=1) + 5 / 25 * 1e-3
    np.testing.assert_allclose(compiled(run, samples), expected, rtol=1e-12)


@pytest.mark.parametrize("target", [-2.0, 0.0, 3.5])
def test_dual_averaging_finds_the_root_of_its_statistic(target: float) -> None:
    start, update = dual_averaging(gamma=0.5)

    def step(_: int, state: tuple) -> tuple:
        return update(jnp.tanh(state[0] - target), state)

    average = compiled(lambda: jax.lax.fori_loop(0, 3_000, step, start())[1])
    # Early iterates are forgotten like t^-0.75, 0.0025 by now, of an overshoot of a few units.
    assert float(average) == pytest.approx(target, abs=0.05)


@pytest.mark.parametrize("warmup", [10, 100, 150, 1000])
def test_adaptation_windows_tile_the_warmup(warmup: int) -> None:
    windows = build_adaptation_schedule(warmup)
    covered = [step for window in windows for step in range(window.start, window.end + 1)]
    assert covered == list(range(warmup))


def test_slow_windows_double_as_in_stan() -> None:
    """A thousand steps: 75, then 25 doubling, the last stretched, then 50 (Stan manual)."""
    sizes = [window.end - window.start + 1 for window in build_adaptation_schedule(1000)]
    assert sizes == [75, 25, 50, 100, 200, 500, 50]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_reasonable_step_follows_the_scale_of_the_target(scale: float) -> None:
    start, _ = velocity_verlet(lambda q: 0.5 * jnp.sum((q / scale) ** 2), euclidean_kinetic_energy)

    def momentum(prototype: jax.Array, mass: jax.Array, key: jax.Array) -> jax.Array:
        del mass
        return jax.random.normal(key, prototype.shape)

    def search() -> jax.Array:
        origin = jnp.full(4, scale)
        return find_reasonable_step_size(
            lambda q: 0.5 * jnp.sum((q / scale) ** 2),
            euclidean_kinetic_energy,
            momentum,
            jnp.array(1.0),
            jnp.ones(4),
            start(origin, jnp.zeros(4)),
            jax.random.key(SEED),
        )

    step = float(compiled(search))
    # Beyond two scales leapfrog is unstable and rejects; well under a tenth it always accepts.
    assert 0.1 * scale < step <= 8.0 * scale
    assert np.log2(step) == pytest.approx(round(np.log2(step)), abs=1e-12)
