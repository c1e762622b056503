"""Every call of the service, one file per noun; each describes, none sends."""
