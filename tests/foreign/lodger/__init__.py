"""Plug-ins for Sublet that know nothing of it but its ports."""
