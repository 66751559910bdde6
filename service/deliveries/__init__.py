"""Deliveries of messages to webhooks, topics, chats and mail."""
