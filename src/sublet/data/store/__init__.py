"""The SQL of credentials, places, transfers and uploads."""
