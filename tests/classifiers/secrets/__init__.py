"""Tests of the redaction of secrets."""
