# PBS's part of job.sh: what a job knows of itself.
scheduler=PBS job_log=pbs.log job_listens=1
[ -n "$1" ] || set -- "$SUBLET_DIRECTORY"
job_id=$PBS_JOBID job_nodes=$(sort -u "$PBS_NODEFILE" | wc -l) job_disk=$PBS_JOBDIR job_part=${PBS_ARRAY_INDEX:-0}
part_id() { printf '%s' "$PBS_ARRAY_ID" | sed "s/\[\]/[$1]/"; }
drop_parts() { qdel "$@"; }
in_job() { case $1 in */pbs*/*) ;; *) return 1 ;; esac; }

