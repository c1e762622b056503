"""The reconcile loop: takes every session that is due one step further, and looks after bookings and retention."""
