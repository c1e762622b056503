"""Data that travels over HTTP about offers, sessions, platforms and events; quick to load for the command line too."""
