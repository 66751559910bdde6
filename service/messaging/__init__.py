"""Consuming and producing records of topics; the adapter for Kafka is in `service.messaging.kafka`."""
