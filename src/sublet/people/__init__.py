"""Who someone is: sign-in, OpenID Connect, second factors, tokens, groups."""
