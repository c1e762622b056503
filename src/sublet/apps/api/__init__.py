"""Apps, their runs, trials and maintainers over HTTP."""
