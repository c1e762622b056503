"""The SQL of apps, their versions, and the drafts of old clients."""
