"""What travels over HTTP about the archive."""
