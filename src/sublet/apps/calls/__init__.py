"""The SDK's calls about apps, their runs and trials."""
