# Slurm's piece of cancel.sh. No number is named: scancel itself chooses by the name, or has the controller do so, at once and as
# a whole, where that can (SCANCEL_CTLD; older ones don't mind). A controller that is away is told as "not permitted" on the first
# road, and as what it is on the second.

cancel_job() { SCANCEL_CTLD=1 scancel --quiet --name="$key" 2>/dev/null || scancel --quiet --name="$key"; }

