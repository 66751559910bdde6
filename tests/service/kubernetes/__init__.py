"""Tests of service.kubernetes."""
