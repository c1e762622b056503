"""Views of annexes, the access point and HTCondor jobs, as sent over HTTP."""
