# Starts a session's program, given by the arguments, once on each node of its job, with srun. The first that fails ends
# the others, and its code is that of all: srun would report the highest, which may be that of one that was ended then.
failed=${0%/*}/failed.$SLURM_JOB_ID
if [ "$1" = --there ]; then
    shift
    SUBLET_NODE_NUMBER=$SLURM_NODEID
    export SUBLET_NODE_NUMBER
    "$@"
    code=$?
    [ "$code" = 0 ] || (set -C; echo "$code" >"$failed") 2>/dev/null
    exit "$code"
fi
SUBLET_FIRST_NODE=${SLURMD_NODENAME:-$(uname -n)}
export SUBLET_FIRST_NODE
unset SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK # of the job's own tasks; each program has all cores of its node
trap 'kill -s TERM "$child" 2>/dev/null' TERM INT
srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --cpu-bind=none --unbuffered --wait=0 \
    --kill-on-bad-exit=1 sh "$0" --there "$@" &
child=$!
while :; do
    wait "$child"
    code=$?
    kill -0 "$child" 2>/dev/null || break
done
[ "$code" = 0 ] || { [ -s "$failed" ] && read -r code <"$failed"; }
exit "$code"
