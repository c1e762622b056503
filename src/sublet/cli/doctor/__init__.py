"""`doctor`: what is checked on this machine, in the home directory, the settings, the database and the service."""
