"""The SDK's calls about people, tokens, second factors and sign-in."""
