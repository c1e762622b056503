"""Kubernetes, by its API: sessions are Jobs of one namespace."""
