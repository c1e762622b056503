"""The pages about people's data: uploads, and what opens their storage."""
