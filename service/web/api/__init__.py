"""Endpoints of /api/v1; no logic."""
