"""Closed forms for a Gaussian prior with a linear Gaussian likelihood, in NumPy and SciPy.

The model is `y = design @ weights + noise`, `weights ~ N(0, prior_scale**2)` independently and
`noise ~ N(0, noise_scale**2)`. References: Bishop, Pattern Recognition and Machine Learning,
equations 3.50, 3.51 (posterior) and 2.115 (evidence).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats


@dataclass(frozen=True, kw_only=True)
class LinearGaussian:
    """Data and known scales of one problem."""

    design: NDArray[np.float64]
    response: NDArray[np.float64]
    prior_scale: float
    noise_scale: float

    @property
    def precision(self) -> NDArray[np.float64]:
        """Posterior precision of the weights."""
        gram = self.design.T @ self.design
        return gram / self.noise_scale**2 + np.eye(gram.shape[0]) / self.prior_scale**2

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Posterior covariance of the weights."""
        return np.linalg.inv(self.precision)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Posterior mean, which is also the mode."""
        return np.linalg.solve(self.precision, self.design.T @ self.response / self.noise_scale**2)

    @property
    def log_evidence(self) -> float:
        """Log density of the response with the weights integrated out."""
        marginal = self.prior_scale**2 * self.design @ self.design.T
        marginal += self.noise_scale**2 * np.eye(self.response.size)
        centre = np.zeros(self.response.size)
        return float(stats.multivariate_normal(centre, marginal).logpdf(self.response))


def make_linear_gaussian(seed: int, *, rows: int = 12, columns: int = 2) -> LinearGaussian:
    """Return a problem whose columns are correlated, so that a factorised guess is wrong."""
    generator = np.random.default_rng(seed)
    design = generator.normal(size=(rows, columns))
    design[:, 1:] += 0.9 * design[:, :1]
    truth = np.linspace(-1.0, 1.5, columns)
    response = design @ truth + 0.5 * generator.normal(size=rows)
    return LinearGaussian(design=design, response=response, prior_scale=2.0, noise_scale=0.5)
