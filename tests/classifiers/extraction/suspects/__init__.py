"""Tests of the suspect rank, node and GPU."""
