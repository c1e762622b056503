"""Staging: which kinds and movers there are, and how what a session needs is brought and laid out."""
