"""Commands: system, and logins to systems."""
