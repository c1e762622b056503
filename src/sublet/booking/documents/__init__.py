"""Requests as documents: the full form, the short form and older forms, read and checked."""
