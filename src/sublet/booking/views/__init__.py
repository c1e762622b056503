"""What travels over HTTP about offers, sessions, platforms and events: light, for the command line too."""
