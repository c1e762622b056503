"""HTCondor, through its command line: a pool, or an annex."""
