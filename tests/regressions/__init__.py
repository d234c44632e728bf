"""Minimal programs that once failed, by topic."""
