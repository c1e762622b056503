"""The calls of the SDK about apps, their runs and trials."""
