"""The archive: what is kept of each session beyond its deletion, and what is learnt from it."""
