"""The FastAPI application: API and pages."""
