"""The platform side of Faultline: read events, diagnose, store, recommend, deliver, serve, report."""
