"""Serves old clients of CyberGIS-Compute (version 2), in the form that they expect."""
