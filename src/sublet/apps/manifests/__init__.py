"""Manifests of apps, one file for each form in which they are written; `reader.py` chooses."""
