"""Which evidence around a job bears on its failure: node events and related failures."""
