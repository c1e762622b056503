"""Grid Engine, through its command line: on this machine, or on one that is reached over OpenSSH."""
