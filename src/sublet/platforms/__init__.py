"""One file is one platform. What every platform answers is in `port.py`."""
