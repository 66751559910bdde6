"""Programs that run next to a scheduler and execute requests; of the service they use only its API."""
