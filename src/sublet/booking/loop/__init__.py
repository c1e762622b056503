"""The reconcile loop: takes every session that is due one step on, and keeps what it promised true."""
