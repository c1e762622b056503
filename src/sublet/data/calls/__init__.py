"""The SDK's calls about data."""
