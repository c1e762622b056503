"""What batch systems behind SSH share: a guest's directory, submitting once, watching, and kept files."""
