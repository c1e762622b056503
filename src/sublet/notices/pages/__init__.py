"""The page of notifications."""
