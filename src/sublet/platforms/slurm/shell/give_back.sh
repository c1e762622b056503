# Releases some nodes of a running session's job. Arguments: the root directory, the key, then the nodes. The first node
# runs the batch script, and stays.

cd "$1/sessions/$2" || exit 1
key=$2 # the job's name, by which Slurm finds it here and below: numbers are reused
rows=$(squeue --me --noheader --name="$key" --states=RUNNING --format='%B %N') || exit 1
shift 2
[ -n "$rows" ] || { echo "the job does not run" >&2; exit 1; }
first=${rows%% *} list=${rows##* }

same() { # whether two names are of the same node; one may have a domain
    case $1 in "$2" | "$2".*) return 0 ;; esac
    case $2 in "$1".*) return 0 ;; esac
    return 1
}

keep=
for node in $(scontrol show hostnames "$list"); do
    gone=
    for name; do same "$node" "$name" && gone=1; done
    [ -n "$gone" ] && [ "$node" = "$first" ] && { echo "$node is the first node, which carries the others" >&2; exit 1; }
    [ -n "$gone" ] || keep=${keep:+$keep,}$node
done
exec scontrol update JobName="$key" NodeList="$keep"
