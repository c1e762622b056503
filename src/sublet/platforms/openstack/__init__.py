"""OpenStack: sessions as virtual machines of a cloud's project."""
