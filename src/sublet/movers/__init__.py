"""One file is one way to bring data. What every mover answers is in `port.py`."""
