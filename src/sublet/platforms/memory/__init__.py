"""A platform for tests and trials, that does all work by the clock only."""
