"""Commands: access, account, pledge, audit, usage."""
