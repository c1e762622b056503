"""Runs commands and transfers files, on this machine or by OpenSSH."""
