"""Commands: ask, run, sweep, ps, status, logs, result and their kin."""
