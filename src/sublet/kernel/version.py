"""Sublet's version as a constant: looking it up in the installed packages' metadata would be slow."""

VERSION = "0.1.0"
