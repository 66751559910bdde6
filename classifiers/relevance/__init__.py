"""Which node events, changes and related failures bear on a failure. Reads no logs: `extraction` does."""
