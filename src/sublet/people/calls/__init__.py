"""The calls of the SDK about people, tokens, second factors and sign-in."""
