"""What fixed failures, as people report it: one of the ten mitigations for each."""
