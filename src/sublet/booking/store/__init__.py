"""SQL for offer sets, sessions, bookings, claims and events."""
