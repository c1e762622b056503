"""Apps decided: manifests, parameters, resources, repositories and trees of files."""
