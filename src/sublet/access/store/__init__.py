"""The SQL of access rules, requests for access, community accounts, budgets and usage."""
