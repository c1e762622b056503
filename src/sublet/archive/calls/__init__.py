"""The SDK's calls about the archive."""
