"""How a command gets to a machine: this one, or another over OpenSSH."""
