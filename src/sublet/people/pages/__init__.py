"""Pages: sign-in, account, second factor and people."""
