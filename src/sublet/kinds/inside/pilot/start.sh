# The program of a lease, on its first node: starts one pilot on each node. POSIX sh and coreutils. On several nodes,
# the platform's script starts programs on each (SUBLET_ON_NODES), or else Slurm does.
#
#   values    the lease, its token, the service's addresses and its expected key
#   node.sh   one node's pilot;  ask.sh: how it calls the service
#
# Nodes are independent: the loss of one ends neither the others nor this script.

here=$(cd "${0%/*}" && pwd) || exit 85
count=${SLURM_JOB_NUM_NODES:-1}
home=$(cd && pwd)
[ -e "$home/.apptainer" ] || fresh=1

export SUBLET_NODE_SCRATCH="${SUBLET_NODE_SCRATCH:-${TMPDIR:-}}"
unset TMPDIR # Slurm would make a directory of this name on every node
if [ -n "${SUBLET_ON_NODES:-}" ]; then
    sh "$SUBLET_ON_NODES" sh "$here/node.sh" &
elif [ "$count" -gt 1 ]; then
    unset SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK # for the job's own tasks; a pilot gets all cores of its node
    srun --nodes="$count" --ntasks="$count" --ntasks-per-node=1 --cpu-bind=none --no-kill --wait=0 --kill-on-bad-exit=0 \
        sh "$here/node.sh" &
else
    sh "$here/node.sh" &
fi
child=$!
trap 'kill -s TERM "$child" 2>/dev/null' TERM INT HUP
while :; do
    wait "$child"
    code=$?
    kill -0 "$child" 2>/dev/null || break
done
[ -n "$fresh" ] && find "$home/.apptainer" -depth -type d -exec rmdir {} \; 2>/dev/null # new and empty folders are no one's
exit "$code"
