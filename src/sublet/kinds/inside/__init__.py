"""Programs that travel with a job and run there, with Python's standard library only, independent of the service."""
