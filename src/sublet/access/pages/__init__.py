"""Pages about access, rules, audit and usage."""
