"""Data on the command line."""
