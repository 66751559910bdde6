"""Programs that run next to a scheduler and execute requests; they use only the API of the service."""
