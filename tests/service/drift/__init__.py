"""Tests of the watch over drift."""
