"""Looking into compiled programs: why, how much, and whether all stages agree."""
