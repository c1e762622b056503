"""Movers: ways to bring data, a file each; what every mover answers is in `port.py`."""
