"""Tests with large servers of others, each installed once in a place of its own: `make engines`."""
