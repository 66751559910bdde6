"""Goodput and reliability figures: GPU-hours delivered and lost, restarts, times to detect and to restart, MTTF."""
