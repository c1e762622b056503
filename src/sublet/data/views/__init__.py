"""The views of data in the HTTP API."""
