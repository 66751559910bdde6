"""Tests of service.hooks.kubernetes."""
