"""Access rules, accounts, pledges, audit and usage over HTTP."""
