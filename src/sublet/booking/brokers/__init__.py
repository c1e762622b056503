"""Other brokers: which there are, requests that are passed on to them, and an outbox, so that nothing stays held."""
