# Moves the end of a job's time in Slurm. Arguments: the key, the new limit in minutes. scontrol finds the job by its name,
# which is never given again; a number would be given again by a controller that lost its last seconds, perhaps to
# somebody else's job.

exec scontrol update JobName="$1" TimeLimit="$2"
