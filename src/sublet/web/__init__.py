"""The frame of the pages: their shell, shared parts and static files; each subject has pages of its own."""
