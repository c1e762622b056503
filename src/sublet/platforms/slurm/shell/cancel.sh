# Slurm's part of cancel.sh. The job is named, not numbered: scancel selects it by name itself, or lets the controller
# do so atomically, where that is supported (SCANCEL_CTLD; older versions ignore it). If the controller is away, the
# first form says "not permitted", and the second the real reason.

cancel_job() { SCANCEL_CTLD=1 scancel --quiet --name="$key" 2>/dev/null || scancel --quiet --name="$key"; }

