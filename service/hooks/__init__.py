"""Programs that run beside a scheduler and act on requests; they talk to the service by its API only."""
