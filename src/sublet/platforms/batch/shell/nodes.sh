# Runs a program on each node of a job, and ends when all have ended; the loss of one ends neither the others nor this. It is in
# the session's directory, and jobs find it as $SUBLET_ON_NODES. Arguments: the program's words. Each finds SUBLET_NODE_NUMBER (0 is
# this node) and SUBLET_NODE_NAME, beside all that this has in its environment. Before it stands the scheduler's own piece, which has
#
#   list_nodes     the job's nodes, a line each, this one first
#   on_node NODE LINE  becomes what runs a line of the shell on another of them
#   ends_with_us   whether what runs there ends with `on_node` by itself; if it doesn't, it ends when its stdin does

quoted() { printf " '%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }

run_there() { # on another node: the environment's file, whether to listen, the number, the name, the program
    . "$1"
    cd "$SUBLET_NODES_AT" || exit 70
    listens=$2 SUBLET_NODE_NUMBER=$3 SUBLET_NODE_NAME=$4
    export SUBLET_NODE_NUMBER SUBLET_NODE_NAME
    shift 4
    [ "$listens" = 1 ] || exec "$@" </dev/null
    exec 3<&0
    "$@" </dev/null 3<&- &
    child=$!
    (cat <&3 >/dev/null; kill -s TERM "$child") >/dev/null 2>&1 &
    wait_for "$child"
}

wait_for() { # the end of a process, whatever signals come meanwhile; its code
    while :; do
        wait "$1"
        code=$?
        kill -0 "$1" 2>/dev/null || return "$code"
    done
}

if [ "$1" = --there ]; then
    shift
    trap 'kill -s TERM "$child" 2>/dev/null' TERM INT HUP
    run_there "$@"
    exit
fi

here=${0%/*}
umask 077
made=$(mktemp -d "${TMPDIR:-/tmp}/sublet-nodes.XXXXXX") && mkfifo "$made/open" || exit 73
exec 3<>"$made/open" 4<"$made/open" # the only end that is written to: when this is gone, those who read come to its end
rm -rf "$made"
SUBLET_NODES_AT=$PWD
export SUBLET_NODES_AT
export -p >"$here/nodes.env" || exit 73
trap 'rm -f "$here/nodes.env"' EXIT
listens=1
ends_with_us && listens=0
number=0 children=
for node in $(list_nodes); do
    if [ "$number" = 0 ]; then
        SUBLET_NODE_NUMBER=0 SUBLET_NODE_NAME=$node "$@" </dev/null 3>&- 4<&- &
    else
        line=
        for word in sh "$0" --there "$here/nodes.env" "$listens" "$number" "$node" "$@"; do line=$line$(quoted "$word"); done
        on_node "$node" "${line# }" <&4 3>&- 4<&- &
    fi
    children="$children $!" number=$((number + 1))
done
trap 'exec 3>&-; kill -s TERM $children 2>/dev/null' TERM INT HUP
most=0
for child in $children; do
    wait_for "$child"
    code=$?
    [ "$code" -gt "$most" ] && most=$code
done
exit "$most"
