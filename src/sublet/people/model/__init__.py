"""People decided: names, addresses, mailboxes and token scopes."""
