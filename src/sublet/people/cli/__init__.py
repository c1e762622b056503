"""Commands: login, token, person, group, second factor."""
