"""What a person sees under /v1, one file per noun, so that the command line loads only what it draws."""
