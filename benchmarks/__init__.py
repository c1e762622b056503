"""What `make bench` runs: each module has a NAME and a run() that gives rows; figures are ratios within one run."""
