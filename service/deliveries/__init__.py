"""Deliveries of messages to webhooks, topics and chats."""
