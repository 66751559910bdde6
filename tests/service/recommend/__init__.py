"""Tests of service.recommend."""
