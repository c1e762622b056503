# Moves the end of a job's time in Slurm. Arguments: the key, the job's number, the new limit in minutes. The job is known by its
# name as well: a controller that lost its last seconds gives a number again, perhaps to somebody else's job.

rows=$(squeue --me --noheader --jobs="$2" --name="$1" --format=%F) || exit 1
[ -n "$rows" ] || { echo "job $2 is not this session's job any more" >&2; exit 1; }
exec scontrol update JobId="$2" TimeLimit="$3"
