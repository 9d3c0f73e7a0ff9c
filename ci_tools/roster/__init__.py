"""Which tests there are, which lane each is in, and why: markers, lock, checks, answers."""
