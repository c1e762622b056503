"""The SQL of what is kept about people's data."""
