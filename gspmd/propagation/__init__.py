"""Propagation: from a few annotated tensors to a sharding of every value, and the reasons for each."""

from gspmd.propagation.propagate import propagate
from gspmd.propagation.reasons import Chain, Conflict, Event, Reasons

__all__ = ["Chain", "Conflict", "Event", "Reasons", "propagate"]
