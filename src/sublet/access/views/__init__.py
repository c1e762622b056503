"""The views of access, accounts, pledges, audit and usage in the HTTP API."""
