"""Effect handlers: what each does to the sites of a model, one at a time and stacked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.infer.util import log_density
from scipy import stats

from tests.roster.support.compiled import compiled


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def chain() -> jax.Array:
    """Three sites, each the next one's mean."""
    a = numpyro.sample("a", dist.Normal(0.0, 1.0))
    b = numpyro.sample("b", dist.Normal(a, 2.0))
    return numpyro.sample("c", dist.Normal(b, 0.5))


def trace_of(model: Any, *arguments: Any) -> dict[str, Any]:
    return dict(handlers.trace(model).get_trace(*arguments))


def joint(values: dict[str, float]) -> float:
    total = stats.norm(0.0, 1.0).logpdf(values["a"])
    total += stats.norm(values["a"], 2.0).logpdf(values["b"])
    return float(total + stats.norm(values["b"], 0.5).logpdf(values["c"]))


def density(model: Any, values: dict[str, float]) -> float:
    parameters = {name: np.array(value) for name, value in values.items()}
    return float(compiled(lambda p: log_density(model, (), {}, p)[0], parameters))


VALUES = {"a": 0.3, "b": -1.0, "c": -0.4}


def test_trace_records_sites_in_the_order_they_were_drawn() -> None:
    found = trace_of(handlers.seed(chain, 0))
    assert list(found) == ["a", "b", "c"]
    assert [site["is_observed"] for site in found.values()] == [False] * 3


def test_seed_makes_the_draws_repeatable() -> None:
    first, again, other = (float(handlers.seed(chain, seed)()) for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_condition_observes_and_substitute_does_not() -> None:
    conditioned = trace_of(handlers.seed(handlers.condition(chain, {"b": jnp.array(1.5)}), 0))
    substituted = trace_of(handlers.seed(handlers.substitute(chain, {"b": jnp.array(1.5)}), 0))
    assert conditioned["b"]["is_observed"]
    assert not substituted["b"]["is_observed"]
    assert float(conditioned["b"]["value"]) == float(substituted["b"]["value"]) == 1.5


def test_joint_density_factorises_along_the_chain() -> None:
    assert density(chain, VALUES) == pytest.approx(joint(VALUES), rel=1e-12)


def test_condition_keeps_the_site_in_the_density() -> None:
    rest = {"a": VALUES["a"], "c": VALUES["c"]}
    conditioned = handlers.condition(chain, {"b": jnp.array(VALUES["b"])})
    assert density(conditioned, rest) == pytest.approx(joint(VALUES), rel=1e-12)


def test_intervention_cuts_the_site_from_its_causes() -> None:
    """do(b) fixes what follows from b and leaves b's own factor at the value it had (Pearl)."""
    intervened = handlers.do(chain, {"b": jnp.array(2.0)})
    expected = stats.norm(0.0, 1.0).logpdf(0.3) + stats.norm(0.3, 2.0).logpdf(-1.0)
    expected += stats.norm(2.0, 0.5).logpdf(-0.4)
    assert density(intervened, VALUES) == pytest.approx(float(expected), rel=1e-12)


def test_block_hides_a_site_from_the_handlers_outside() -> None:
    hidden = handlers.block(handlers.seed(chain, 0), hide=["b"])
    assert list(trace_of(hidden)) == ["a", "c"]


def test_replay_repeats_another_trace() -> None:
    first = trace_of(handlers.seed(chain, 0))
    replayed = trace_of(handlers.seed(handlers.replay(chain, first), 1))
    for name in ("a", "b", "c"):
        assert float(replayed[name]["value"]) == float(first[name]["value"])


def test_scale_multiplies_the_log_density() -> None:
    scaled = handlers.scale(chain, scale=2.5)
    assert density(scaled, VALUES) == pytest.approx(2.5 * joint(VALUES), rel=1e-12)


def test_mask_takes_a_site_out_of_the_density() -> None:
    def masked() -> None:
        a = numpyro.sample("a", dist.Normal(0.0, 1.0))
        with handlers.mask(mask=False):
            numpyro.sample("b", dist.Normal(a, 2.0))

    values = {"a": 0.3, "b": -1.0}
    assert density(masked, values) == pytest.approx(float(stats.norm.logpdf(0.3)), rel=1e-12)


def test_scope_prefixes_the_names() -> None:
    found = trace_of(handlers.seed(handlers.scope(chain, prefix="inner", divider="."), 0))
    assert list(found) == ["inner.a", "inner.b", "inner.c"]


def test_lift_turns_a_parameter_into_a_site() -> None:
    def with_parameter() -> None:
        numpyro.param("centre", jnp.array(0.0))

    lifted = handlers.lift(with_parameter, prior={"centre": dist.Normal(1.0, 2.0)})
    assert trace_of(handlers.seed(lifted, 0))["centre"]["type"] == "sample"
    expected = float(stats.norm(1.0, 2.0).logpdf(0.5))
    assert density(lifted, {"centre": 0.5}) == pytest.approx(expected, rel=1e-12)


def test_plates_stack_from_the_right() -> None:
    def grid() -> None:
        with numpyro.plate("rows", 3, dim=-2), numpyro.plate("columns", 4, dim=-1):
            numpyro.sample("x", dist.Normal(0.0, 1.0))

    site = trace_of(handlers.seed(grid, 0))["x"]
    assert site["value"].shape == (3, 4)
    assert {frame.name: frame.dim for frame in site["cond_indep_stack"]} == {
        "rows": -2,
        "columns": -1,
    }


def test_subsampled_plate_scales_by_the_share_it_leaves_out() -> None:
    def model() -> None:
        with numpyro.plate("points", 12, subsample_size=3):
            numpyro.sample("x", dist.Normal(0.0, 1.0), obs=jnp.zeros(3))

    total = compiled(lambda: log_density(handlers.seed(model, 0), (), {}, {})[0])
    assert float(total) == pytest.approx(12.0 * float(stats.norm.logpdf(0.0)), rel=1e-12)


def test_factor_adds_its_own_term() -> None:
    def model() -> None:
        a = numpyro.sample("a", dist.Normal(0.0, 1.0))
        numpyro.factor("penalty", -3.0 * a**2)

    expected = float(stats.norm.logpdf(0.5)) - 0.75
    assert density(model, {"a": 0.5}) == pytest.approx(expected, rel=1e-12)
