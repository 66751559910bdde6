"""Tests of service.demo."""
