"""Continuous distributions of one variable, each written for NumPyro and for SciPy.

Both are built by calling, so that importing this module creates no JAX array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpyro.distributions as dist
from scipy import stats

# Away from the ends a distribution function is well conditioned; 1e-4 costs four digits at most.
PROBABILITIES = np.array([1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0 - 1e-4])
# A density or distribution function is a handful of float64 operations on terms of its own size,
# 1e-16 times a few hundred, and special functions that are good to about 1e-13.
CLOSE = {"rtol": 1e-11, "atol": 1e-11}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One distribution in the two libraries' parameters."""

    numpyro: Callable[[], dist.Distribution]
    scipy: Callable[[], Any]


CASES = {
    "normal": Case(numpyro=lambda: dist.Normal(-1.0, 2.0), scipy=lambda: stats.norm(-1.0, 2.0)),
    "log-normal": Case(
        numpyro=lambda: dist.LogNormal(0.5, 0.7),
        scipy=lambda: stats.lognorm(0.7, scale=np.exp(0.5)),
    ),
    "exponential": Case(
        numpyro=lambda: dist.Exponential(2.5), scipy=lambda: stats.expon(scale=1 / 2.5)
    ),
    "gamma": Case(
        numpyro=lambda: dist.Gamma(2.3, 1.7), scipy=lambda: stats.gamma(2.3, scale=1 / 1.7)
    ),
    "chi-squared": Case(numpyro=lambda: dist.Chi2(5.0), scipy=lambda: stats.chi2(5.0)),
    "inverse-gamma": Case(
        numpyro=lambda: dist.InverseGamma(4.5, 2.0), scipy=lambda: stats.invgamma(4.5, scale=2.0)
    ),
    "beta": Case(numpyro=lambda: dist.Beta(2.5, 3.5), scipy=lambda: stats.beta(2.5, 3.5)),
    "beta-proportion": Case(
        numpyro=lambda: dist.BetaProportion(0.25, 8.0), scipy=lambda: stats.beta(2.0, 6.0)
    ),
    "student-t": Case(
        numpyro=lambda: dist.StudentT(5.5, 1.0, 2.0), scipy=lambda: stats.t(5.5, 1.0, 2.0)
    ),
    "cauchy": Case(numpyro=lambda: dist.Cauchy(0.5, 2.0), scipy=lambda: stats.cauchy(0.5, 2.0)),
    "half-cauchy": Case(
        numpyro=lambda: dist.HalfCauchy(1.5), scipy=lambda: stats.halfcauchy(scale=1.5)
    ),
    "half-normal": Case(
        numpyro=lambda: dist.HalfNormal(1.5), scipy=lambda: stats.halfnorm(scale=1.5)
    ),
    "laplace": Case(numpyro=lambda: dist.Laplace(1.0, 0.5), scipy=lambda: stats.laplace(1.0, 0.5)),
    "asymmetric-laplace": Case(
        numpyro=lambda: dist.AsymmetricLaplace(1.0, 0.5, 1.6),
        scipy=lambda: stats.laplace_asymmetric(1.6, 1.0, 0.5),
    ),
    "soft-laplace": Case(
        numpyro=lambda: dist.SoftLaplace(1.0, 0.5), scipy=lambda: stats.hypsecant(1.0, 0.5)
    ),
    "logistic": Case(
        numpyro=lambda: dist.Logistic(1.0, 0.5), scipy=lambda: stats.logistic(1.0, 0.5)
    ),
    "gumbel": Case(numpyro=lambda: dist.Gumbel(1.0, 0.5), scipy=lambda: stats.gumbel_r(1.0, 0.5)),
    "uniform": Case(numpyro=lambda: dist.Uniform(-1.0, 3.0), scipy=lambda: stats.uniform(-1, 4)),
    "log-uniform": Case(
        numpyro=lambda: dist.LogUniform(0.5, 20.0), scipy=lambda: stats.loguniform(0.5, 20.0)
    ),
    "pareto": Case(
        numpyro=lambda: dist.Pareto(1.5, 3.5), scipy=lambda: stats.pareto(3.5, scale=1.5)
    ),
    "weibull": Case(
        numpyro=lambda: dist.Weibull(1.5, 2.2), scipy=lambda: stats.weibull_min(2.2, scale=1.5)
    ),
    "gompertz": Case(
        numpyro=lambda: dist.Gompertz(0.8, 1.5), scipy=lambda: stats.gompertz(0.8, scale=1 / 1.5)
    ),
    "dagum": Case(
        numpyro=lambda: dist.Dagum(1.5, 3.2, 2.0),
        scipy=lambda: stats.mielke(1.5 * 3.2, 3.2, scale=2.0),
    ),
    "levy": Case(numpyro=lambda: dist.Levy(1.0, 0.5), scipy=lambda: stats.levy(1.0, 0.5)),
    "folded-normal": Case(
        numpyro=lambda: dist.FoldedDistribution(dist.Normal(1.0, 2.0)),
        scipy=lambda: stats.foldnorm(0.5, scale=2.0),
    ),
    "power-law": Case(
        numpyro=lambda: dist.LowerTruncatedPowerLaw(-3.5, 1.5),
        scipy=lambda: stats.pareto(2.5, scale=1.5),
    ),
    "truncated-power-law": Case(
        numpyro=lambda: dist.DoublyTruncatedPowerLaw(-2.5, 1.5, 9.0),
        scipy=lambda: stats.truncpareto(1.5, 6.0, scale=1.5),
    ),
    "truncated-normal": Case(
        numpyro=lambda: dist.TruncatedNormal(0.5, 2.0, low=-1.0, high=4.0),
        scipy=lambda: stats.truncnorm(-0.75, 1.75, 0.5, 2.0),
    ),
}
