"""What travels over HTTP about apps, their runs and trials."""
