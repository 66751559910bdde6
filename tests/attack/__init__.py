"""Attacks on a running server: each test stands for a class of faults."""
