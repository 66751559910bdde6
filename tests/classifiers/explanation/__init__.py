"""Tests of the explanation of failures."""
