"""The engines: one file each, what they share, and the choice among them."""

from ci_tools.image.engines.obtain import obtain_environment

__all__ = ["obtain_environment"]
