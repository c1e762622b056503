# PBS's part of nodes.sh: tasks that its MoMs start, and that end with the job.

list_nodes() {
    seen=' '
    while read -r node; do # one line per process
        case $seen in *" $node "*) continue ;; esac
        seen="$seen$node "
        printf '%s\n' "$node"
    done <"$PBS_NODEFILE"
}

on_node() { exec pbs_tmrsh "$1" sh -c "$2"; }

ends_with_us() { return 0; }

