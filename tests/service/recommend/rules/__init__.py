"""Tests of service.recommend.rules."""
