"""This machine: processes in directories of their own, each under a shim that outlives the service."""
