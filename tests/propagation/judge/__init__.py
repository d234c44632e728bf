"""Programs whose propagated shardings are compared with Shardy's and XLA's, by value and by the bytes they cost."""
