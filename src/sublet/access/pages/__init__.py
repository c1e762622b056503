"""Pages: access, rules, audit and usage."""
