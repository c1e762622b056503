"""Values and decisions of the archive, without any I/O."""
