"""The documents that travel: requests read, sessions and offer sets written, and the views that the client reads."""
