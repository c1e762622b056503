"""The calls of the SDK about annexes, the access point, HTCondor jobs and DAGs."""
