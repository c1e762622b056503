"""Webhooks decided: which events each is sent, and how often delivery is retried."""
