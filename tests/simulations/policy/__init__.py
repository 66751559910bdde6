"""A simulated fleet in which resubmission policies are compared."""
