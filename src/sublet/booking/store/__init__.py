"""The SQL of offer sets, sessions, bookings, claims and events."""
