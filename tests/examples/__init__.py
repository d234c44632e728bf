"""The examples run as users run them, on one rank and on several, and give the same numbers."""
