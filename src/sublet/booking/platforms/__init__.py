"""The platforms in use: which are known, what each has, draining, probing and start history."""
