"""Platforms, where sessions run: one package each; `port.py` has the interface that they share."""
