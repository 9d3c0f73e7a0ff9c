"""The environment record: what a chunk really ran in."""
