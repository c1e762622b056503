"""Small programs that run many tasks with other tools; each is told how many, and runs in an environment of its own."""
