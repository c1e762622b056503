"""What travels over HTTP about data."""
