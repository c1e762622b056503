"""Annexes: leases of nodes under a name, their pilots, and the HTCondor jobs that run there."""
