"""Incidents: failures of many jobs over one shared resource."""
