"""Commands: app check, propose, review, run."""
