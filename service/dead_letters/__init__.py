"""Records that could not be read or handled."""
