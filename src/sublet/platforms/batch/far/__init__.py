"""What travels to a system and runs there by itself."""
