"""The views of people, tokens and second factors in the HTTP API."""
