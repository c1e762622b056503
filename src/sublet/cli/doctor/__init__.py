"""`doctor`: checks of this machine, the home directory, the settings, the database and the service."""
