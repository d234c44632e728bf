"""Single ops, partitioned every way, beside XLA's partitioning of them: values and bytes on the wire."""
