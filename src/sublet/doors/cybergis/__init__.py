"""What old clients of CyberGIS-Compute (version 2) send, answered as they expect it."""
