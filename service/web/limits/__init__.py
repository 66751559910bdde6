"""Limits of the server: requests in a minute, exports at one time, connections."""
