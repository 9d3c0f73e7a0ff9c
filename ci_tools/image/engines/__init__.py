"""The engines: one file each, what they share, and the choice among them."""
