"""Pages of apps, their review, and the form that runs one."""
