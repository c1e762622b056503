"""Kinds of executable and the ways to run them, a file each; what every kind answers is in `port.py`."""
