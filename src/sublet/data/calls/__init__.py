"""The calls of the SDK about data."""
