"""What travels over HTTP about people, tokens and second factors."""
