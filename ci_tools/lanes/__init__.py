"""Composes the parts into lanes: checks before the plan, chunks in an environment, a verdict."""
