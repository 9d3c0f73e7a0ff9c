"""Programs that run inside the environment: standard library only, sent along as text."""
