"""Property tests repeat their examples; `HYPOTHESIS_PROFILE=search` draws new and many more."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile(
    "default", max_examples=40, deadline=None, derandomize=True, database=None
)
settings.register_profile("search", max_examples=1000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
