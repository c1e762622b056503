"""Booking decided: requests, offers, calendars and sessions as frozen values and pure functions."""
