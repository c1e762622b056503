"""OpenStack: sessions as virtual machines in a cloud's project."""
