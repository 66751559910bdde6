"""The SQL of counts and rates."""
