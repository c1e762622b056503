"""Commands: notify."""
