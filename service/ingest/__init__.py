"""From sources of raw records to the one callable that diagnoses a batch."""
