"""What travels over HTTP about webhooks."""
