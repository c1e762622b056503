"""SDK calls about offers, sessions, platforms and events; each describes a request, and sends nothing."""
