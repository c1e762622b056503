"""From a request to offers, to a session, to its result: the use cases that everything else builds on."""
