"""Pages for those who operate the service: automation, deliveries, dead letters, model, settings."""
