"""What the compiler and its programs cost, measured beside peers in the same run."""
