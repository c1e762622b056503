"""Manifests, parameters, resources, repositories and file trees, as values and pure functions."""
