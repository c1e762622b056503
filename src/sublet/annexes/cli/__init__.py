"""Commands: annex, job, jobset, dag, pilot."""
