"""The views of apps, their runs and trials in the HTTP API."""
