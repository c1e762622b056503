# Slurm's part of job.sh: what a job knows of itself.
scheduler=Slurm job_log=slurm.log
job_id=$SLURM_JOB_ID job_nodes=${SLURM_JOB_NUM_NODES:-1} job_disk=$SLURM_TMPDIR job_part=${SLURM_ARRAY_TASK_ID:-0}
part_id() { printf '%s_%s' "$SLURM_ARRAY_JOB_ID" "$1"; }
drop_parts() { SCANCEL_CTLD=1 scancel --quiet --name="$SLURM_JOB_NAME" "$@"; }
in_job() { case $1 in */job_*) ;; *) return 1 ;; esac; }

