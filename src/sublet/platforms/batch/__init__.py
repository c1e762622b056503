"""What batch systems behind SSH share: a guest's directory, matching requests, submitting, watching, kept files."""
