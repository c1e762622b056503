"""Manifests of apps, with a module for each format; `reader.py` chooses."""
