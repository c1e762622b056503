"""Uploads: how files come in, where they lie, how they are used as data, and when they go."""
