"""Tests of the envelopes of log lines."""
