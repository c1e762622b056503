"""Runs commands and transfers files, on this machine or another over OpenSSH."""
