"""Fused regions as compiled kernels: what they compute, their source text, its cache, and how they are called."""
