"""The front end: tracing, the array API, gradients, control flow."""
