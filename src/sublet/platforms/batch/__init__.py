"""What batch systems behind SSH share: a guest's directory, matching requests, submitting once, watching, kept
files."""
