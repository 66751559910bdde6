"""The SQL of deliveries, endpoints and the outbox."""
