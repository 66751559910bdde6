"""The platform side of Faultline: ingest, diagnose, store, recommend, deliver, serve, report."""
