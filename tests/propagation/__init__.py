"""Propagation: laws on random programs, hand cases, and the reasons."""
