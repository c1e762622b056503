"""Access rules, limits, accounts and usage as frozen values and pure functions."""
