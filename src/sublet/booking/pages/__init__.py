"""Pages: ask, offers, sessions, logs, files and platforms."""
