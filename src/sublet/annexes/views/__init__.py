"""What travels over HTTP about annexes, the access point and HTCondor jobs."""
