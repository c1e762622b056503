"""What batch systems behind SSH share: a guest's directory, what fits, submitting once, watching, kept files."""
