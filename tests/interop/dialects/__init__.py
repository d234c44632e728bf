"""Tiny modules, at least one for each op of StableHLO, CHLO and Shardy, with what they compute."""
