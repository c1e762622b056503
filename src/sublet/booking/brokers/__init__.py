"""Other brokers: a registry, requests that are forwarded to them, and an outbox that releases unused offers."""
