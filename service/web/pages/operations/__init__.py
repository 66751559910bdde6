"""Pages for those who operate the service: automation, deliveries, dead letters, model, audit log, settings."""
