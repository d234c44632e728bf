"""What programs look like elsewhere: StableHLO."""
