"""The calls of the SDK about offers, sessions, platforms and events; each describes, none sends."""
