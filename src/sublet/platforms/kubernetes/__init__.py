"""Kubernetes, through its API: sessions are Jobs in one namespace."""
