"""Views of the archive, as they travel over HTTP."""
