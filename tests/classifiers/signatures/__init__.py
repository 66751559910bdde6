"""The signature catalogue under test."""
