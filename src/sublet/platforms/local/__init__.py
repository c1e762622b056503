"""This machine: processes in their own directories, each under a shim that outlives the service."""
