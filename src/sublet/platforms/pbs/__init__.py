"""PBS Professional and OpenPBS, by their own command line: here, or on a machine that is reached over OpenSSH."""
