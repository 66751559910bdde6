"""The weekly quality report."""
