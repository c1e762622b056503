"""The programs that travel with a job and run there: Python's standard library alone, and nothing of the service."""
