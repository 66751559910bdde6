"""Formats of node events, one module each, and their kinds; `service.formats.node_events` chooses the format."""
