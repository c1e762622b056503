"""Pure decisions about webhooks: which events each is sent, and how often delivery is retried."""
