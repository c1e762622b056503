"""Pages: apps, their review, and the form that runs one."""
