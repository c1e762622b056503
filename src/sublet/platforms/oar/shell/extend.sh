# Asks OAR for more walltime. Arguments: the key, and how many seconds more. Sites must allow it
# (WALLTIME_CHANGE_ENABLED).
number=$(oarstat -J --sql "job_name = '$1' AND state = 'Running'" | sed -n 's/.*"Job_Id" *: *"\{0,1\}\([0-9]*\).*/\1/p')
[ -n "$number" ] || { echo "the job does not run" >&2; exit 1; }
exec oarwalltime "$number" "+0:0:$2"
