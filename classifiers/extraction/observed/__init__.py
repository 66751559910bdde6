"""What the lines of several processes show together."""
