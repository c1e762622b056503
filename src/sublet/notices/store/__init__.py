"""The SQL of webhooks, and of what each has still to be sent."""
