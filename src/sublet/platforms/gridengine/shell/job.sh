# Grid Engine's part of job.sh: what a job knows of itself. qdel kills at once, and qsub's -notify would send programs
# signals that they don't expect.
scheduler='Grid Engine' job_log=gridengine.log job_listens=1
job_id=$JOB_ID job_nodes=${NHOSTS:-1} job_disk=$TMPDIR job_part=0
case $SGE_TASK_ID in '' | undefined) ;; *) job_part=$((SGE_TASK_ID - 1)) ;; esac
part_id() { printf '%s.%s' "$JOB_ID" "$(($1 + 1))"; }
drop_parts() { for task; do qdel "${task%.*}" -t "${task#*.}"; done; }
in_job() { return 1; }

