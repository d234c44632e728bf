"""Generated cases of every op, dtype and attribute: our importer and kernels against XLA on one CPU device."""
