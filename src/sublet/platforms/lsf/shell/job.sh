# LSF's part of job.sh: what a job knows of itself.
scheduler=LSF job_log=lsf.log job_listens=1
job_id=$LSB_JOBID job_nodes=1 job_disk=$LSF_TMPDIR job_part=0
[ -n "$LSB_MCPU_HOSTS" ] && job_nodes=$(($(printf '%s' "$LSB_MCPU_HOSTS" | wc -w) / 2))
case $LSB_JOBINDEX in '' | 0) ;; *) job_part=$((LSB_JOBINDEX - 1)) ;; esac
part_id() { printf '%s[%s]' "$LSB_JOBID" "$(($1 + 1))"; }
drop_parts() { bkill "$@"; }
in_job() { case $1 in */lsf/*) ;; *) return 1 ;; esac; }

