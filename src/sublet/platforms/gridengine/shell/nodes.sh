# Grid Engine's part of nodes.sh: tasks of the job, where its parallel environment has `control_slaves TRUE`. They end
# with the job, and are killed at once if qrsh is: so the end of stdin tells them to end.

list_nodes() {
    while read -r node _; do printf '%s\n' "$node"; done <"${PE_HOSTFILE:-/dev/null}"
}

on_node() { exec qrsh -inherit "$1" sh -c "$(quoted "$2")"; }

ends_with_us() { return 1; }

