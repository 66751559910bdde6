"""Real servers and clusters that tests start."""
