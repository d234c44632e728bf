"""XLA as an independent judge, and the record of its answers."""
