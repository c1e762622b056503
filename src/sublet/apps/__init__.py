"""Apps: reviewed code with a manifest; proposals, review, runs and trials."""
