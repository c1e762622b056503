"""Commands: ask, run, sweep, ps, status, logs, result and related ones."""
