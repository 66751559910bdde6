"""Tests of the evidence of nodes and other jobs."""
