"""The only package that speaks Kafka: consumer source and producer."""
