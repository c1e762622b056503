"""Views of notifications, as they travel over HTTP."""
