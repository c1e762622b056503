"""Web pages about people's data: uploads, credentials, caches."""
