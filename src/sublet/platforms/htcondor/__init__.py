"""HTCondor, by its own command line: a pool, or an annex."""
