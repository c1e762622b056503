"""CANFAR's Skaha: containers and interactive sessions through its REST API, called as its own client does."""
