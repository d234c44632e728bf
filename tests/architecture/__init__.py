"""Rules about the code itself, read off its syntax trees."""
