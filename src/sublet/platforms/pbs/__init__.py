"""PBS Professional and OpenPBS, through their command line: on this machine, or over OpenSSH."""
