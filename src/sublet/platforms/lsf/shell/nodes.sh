# LSF's part of nodes.sh: tasks that LSF starts, and ends with the job.

list_nodes() {
    set -- $LSB_MCPU_HOSTS # a name and a number of cores for each
    while [ $# -gt 1 ]; do
        printf '%s\n' "$1"
        shift 2
    done
}

on_node() { exec blaunch "$1" sh -c "$2"; }

ends_with_us() { return 0; }

