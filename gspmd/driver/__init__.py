"""The compiler as a whole: the named stages in order, modules, compiled programs, and where programs come from."""
