"""What every test shares: the same random examples in every run, and no deadline on a busy machine."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("house", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("house")
