"""A platform for tests and trials, which simulates all work by the clock."""
