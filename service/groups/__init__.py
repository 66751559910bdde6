"""Groups of failures of the same kind."""
