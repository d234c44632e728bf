"""The differential fuzzer: random programs over all ops, meshes and annotations, every stage against one device."""
