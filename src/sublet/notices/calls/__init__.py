"""The calls of the SDK about webhooks."""
