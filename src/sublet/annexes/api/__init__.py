"""Annexes, the access point, HTCondor jobs and DAGs over HTTP; and what pilots ask."""
