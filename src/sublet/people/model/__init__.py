"""Names, addresses, mailboxes, claims and token scopes, as values and pure functions."""
