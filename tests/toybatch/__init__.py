"""A batch system of its own: a job is a process that begins at once. All that it shares with others is Sublet's."""
