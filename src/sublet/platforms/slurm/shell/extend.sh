# Moves the end of a job's time in Slurm. Arguments: the key, the new limit in minutes. scontrol finds the job by its
# name, which is never reused; a controller that lost its last seconds may reuse a number, perhaps for somebody else's
# job.

exec scontrol update JobName="$1" TimeLimit="$2"
