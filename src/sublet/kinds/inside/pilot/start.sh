# The program of a lease, on its first node: one pilot on each node. POSIX sh and coreutils. Where there are several nodes,
# its platform says how programs are started on each (SUBLET_ON_NODES), else Slurm does.
#
#   values    the lease, its token, where to ask and the key to expect there
#   node.sh   one node's pilot;  ask.sh: how it asks
#
# Nodes come and go by themselves: the loss of one ends neither the others nor this.

here=$(cd "${0%/*}" && pwd) || exit 85
count=${SLURM_JOB_NUM_NODES:-1}
home=$(cd && pwd)
[ -e "$home/.apptainer" ] || fresh=1

export SUBLET_NODE_SCRATCH="${SUBLET_NODE_SCRATCH:-${TMPDIR:-}}"
unset TMPDIR # Slurm would make a directory of this name on every node
if [ -n "${SUBLET_ON_NODES:-}" ]; then
    sh "$SUBLET_ON_NODES" sh "$here/node.sh" &
elif [ "$count" -gt 1 ]; then
    unset SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK # of the job's own tasks; a pilot has its node's cores
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
[ -n "$fresh" ] && find "$home/.apptainer" -depth -type d -exec rmdir {} \; 2>/dev/null # nothing of a person's is empty and new
exit "$code"
