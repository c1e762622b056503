# OAR's part of job.sh: what a job knows of itself.
scheduler=OAR job_log=oar.log job_listens=1
job_id=$OAR_JOB_ID job_nodes=$(sort -u "$OAR_NODE_FILE" | wc -l) job_disk= job_part=$((${OAR_ARRAY_INDEX:-1} - 1))
part_id() { printf '%s' "$((OAR_ARRAY_ID + $1))"; }
drop_parts() { oardel "$@"; }
in_job() { case $1 in */oar/*) ;; *) return 1 ;; esac; }

