"""Platforms: where sessions run, a package each; what every platform answers is in `port.py`."""
