"""Where a failure began: rank, node and GPU."""
