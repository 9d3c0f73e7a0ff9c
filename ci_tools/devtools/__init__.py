"""What the maintainers of jax-gate run on jax-gate itself; no lane needs it."""
