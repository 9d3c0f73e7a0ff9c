"""Gate JAX and NumPyro code in a pinned container, with a verdict computed from records."""

__version__ = "0.1.0"
