"""Requests as documents: the full form, the short form, and older shapes, read and checked."""
