"""JAX's compiled programs, kept from one run to the next."""
