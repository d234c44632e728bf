"""Functions on NumPy arrays, without the IR: what ops mean, and how closely results must agree."""
