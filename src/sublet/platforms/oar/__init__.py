"""OAR, through its command line: on this machine, or over OpenSSH. Its users can reserve nodes ahead."""
