"""Pages for those who operate the service: automation, deliveries, dead letters, the model with drift and site layers, the audit log, settings."""
