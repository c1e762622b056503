"""What Sublet decides: frozen values and pure functions, with the time passed in."""
