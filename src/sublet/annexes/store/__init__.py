"""The SQL of annexes, leases, pilots and templates."""
