"""CANFAR's Skaha: containers and interactive sessions by its REST API, as its own client calls it."""
