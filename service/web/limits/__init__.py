"""Limits of the server: requests and exports of each caller, connections, bodies of requests."""
