"""Offers, sessions, logs, results and platforms over HTTP."""
