"""Grid Engine, by its own command line: here, or on a machine that is reached over OpenSSH."""
