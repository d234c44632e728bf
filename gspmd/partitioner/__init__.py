"""The partitioner: from a sharding of every value to the program of one device (paper section 4)."""
