# Runs a program on each node of a job, and ends when all have ended; the loss of one ends neither the others nor this. It
# is in the session's directory, and jobs find it as $SUBLET_ON_NODES. Arguments: the program and its arguments. Each finds
# SUBLET_NODE_NUMBER (0 is this node), SUBLET_NODE_NAME and SUBLET_FIRST_NODE, besides the environment of this script. With
# `--together` as the first argument, the first that fails ends the others with all their processes, and its exit code is
# that of all (each.sh). The scheduler's own part stands before it, which has
#
#   list_nodes     the job's nodes, one per line, this one first
#   on_node NODE LINE  becomes what runs a line of the shell on another node
#   ends_with_us   whether a program there ends with `on_node` by itself; otherwise it ends when its stdin does

quoted() { printf " '%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }

wait_for() { # waits for the end of a process, whatever signals come meanwhile; returns its code
    while :; do
        wait "$1"
        code=$?
        kill -0 "$1" 2>/dev/null || return "$code"
    done
}

know() { # sets the variable that identifies a node's processes (life.sh), and the grace period
    mark=SUBLET_NODE_MARK=$SUBLET_SESSION.$SUBLET_PART.$1.
    grace=$(. "$here/program" && printf '%s' "$grace")
    . "$here/life.sh"
}

run_there() { # runs on another node; arguments: the environment's file, how to listen, the number, the name, the program
    . "$1"
    cd "$SUBLET_NODES_AT" || exit 70
    how=$2 SUBLET_NODE_NUMBER=$3 SUBLET_NODE_NAME=$4
    export SUBLET_NODE_NUMBER SUBLET_NODE_NAME
    shift 4
    [ "$how" = ends ] && exec "$@" </dev/null
    exec 3<&0
    end_there() { kill -s TERM "$child"; }
    if [ "$how" = together ]; then
        know "$SUBLET_NODE_NUMBER"
        end_there() { stop_all "$grace"; }
        (export "$mark" && exec "$@") </dev/null 3<&- &
    else
        "$@" </dev/null 3<&- &
    fi
    child=$!
    (cat <&3 >/dev/null; end_there) >/dev/null 2>&1 &
    wait_for "$child"
    code=$?
    [ "$how" = together ] && stop_all 1
    return "$code"
}

here=${0%/*}
if [ "$1" = --there ]; then
    shift
    trap 'end_there 2>/dev/null' TERM INT HUP
    run_there "$@"
    exit
fi

together=
[ "$1" = --together ] && together=1 && shift

start_on() { # arguments: a number, a node and the program; becomes what runs it there
    number=$1 node=$2
    shift 2
    if [ "$number" = 0 ]; then
        SUBLET_NODE_NUMBER=0 SUBLET_NODE_NAME=$node
        export SUBLET_NODE_NUMBER SUBLET_NODE_NAME
        [ -z "$together" ] || export "$mark"
        exec "$@" </dev/null
    fi
    line=
    for word in sh "$0" --there "$list" "$how" "$number" "$node" "$@"; do line=$line$(quoted "$word"); done
    [ "$how" = together ] && unset SUBLET_SESSION SUBLET_MARK # so that stopping the job's processes spares this one, which carries their last output
    on_node "$node" "${line# }"
}

run_on() { # the same, but this shell stays, and reports a failure
    own= which=$1
    trap end_on TERM
    exec 4<&0
    (start_on "$@") <&4 4<&- &
    own=$!
    wait_for "$own"
    code=$?
    [ "$code" = 0 ] || { (set -C && echo "$code" >"$made/failed") 2>/dev/null && kill -s USR1 $$; }
    exit "$code"
}

end_on() { # where it listens on stdin, the end of stdin is the signal
    trap '' TERM
    if [ "$which" = 0 ]; then
        stop_all "$grace"
    elif [ "$how" = ends ] && [ -n "$own" ]; then
        kill -s TERM "$own" 2>/dev/null
    fi
}

end_all() { exec 3>&-; kill -s TERM $children 2>/dev/null; }

give_up() { # one has failed; a node that no longer answers must not keep the others waiting
    end_all
    (sleep $((grace + 5)) && kill -s KILL $children 2>/dev/null) &
}

umask 077
made=$(mktemp -d "${TMPDIR:-/tmp}/sublet-nodes.XXXXXX") && mkfifo "$made/open" || exit 73
exec 3<>"$made/open" 4<"$made/open" # the only writing end: when this process is gone, the readers see the end of file
rm -f "$made/open"
list=$(mktemp "$here/nodes.XXXXXX") || exit 73
trap 'rm -rf "$list" "$made"' EXIT
nodes=$(list_nodes)
SUBLET_NODES_AT=$PWD SUBLET_FIRST_NODE=${nodes%%
*}
export SUBLET_NODES_AT SUBLET_FIRST_NODE
export -p >"$list" || exit 73
how=alone run=start_on
[ -n "$together" ] && how=together run=run_on && know 0
ends_with_us && how=ends
trap give_up USR1
number=0 children=
for node in $nodes; do
    [ ! -e "$made/failed" ] || break
    ($run "$number" "$node" "$@") <&4 3>&- 4<&- & # in parentheses: a function's shell would keep what it closes
    children="$children $!" number=$((number + 1))
done
trap end_all TERM INT HUP
[ ! -e "$made/failed" ] || end_all # also those that were started meanwhile
most=0
for child in $children; do
    wait_for "$child"
    code=$?
    [ "$code" -gt "$most" ] && most=$code
done
[ -s "$made/failed" ] && read -r most <"$made/failed"
exit "$most"
