"""Passes over per-device programs: fetches expanded, duplicates merged, kernels formed."""
