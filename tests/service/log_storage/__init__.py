"""Tests of service.log_storage."""
