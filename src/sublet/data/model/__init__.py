"""Pure values and decisions about staging data and sending results."""
