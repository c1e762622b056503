"""Pure values and decisions about data that is brought and sent."""
