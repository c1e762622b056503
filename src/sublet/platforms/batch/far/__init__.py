"""Programs that are sent to a system and run there on their own."""
