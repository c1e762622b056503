"""Who may use what: rules, quotas, pledges, community accounts, audit and usage."""
