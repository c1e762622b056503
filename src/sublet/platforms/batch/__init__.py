"""What batch systems behind SSH share: the login, quoted shell text, and files that are kept there once."""
