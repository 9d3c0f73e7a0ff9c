"""The lockfiles: compiled from `*.in` with hashes, and held against them without a network."""
