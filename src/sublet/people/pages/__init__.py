"""Pages for sign-in, account, second factor and people."""
