"""Real HPC sites out of namespaces on one machine, for tests and for people who want to try Sublet."""
