"""The command `notify`."""
