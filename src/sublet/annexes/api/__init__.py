"""Annexes, the access point, HTCondor jobs and DAGs over HTTP; and the endpoints for pilots."""
