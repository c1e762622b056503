"""Notifications: events, webhooks and mail about sessions."""
