"""The SQL of goodput and reliability figures."""
