"""Sign-in, tokens, second factors, people and groups over HTTP."""
