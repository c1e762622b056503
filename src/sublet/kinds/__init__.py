"""One file is one kind of executable and the ways to run it. What every kind answers is in `port.py`."""
