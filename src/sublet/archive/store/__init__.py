"""The tables of the archive, and their SQL."""
