"""What every room stands on: errors, settings, the clock, the home directory, the vault, plug-ins and logs."""
