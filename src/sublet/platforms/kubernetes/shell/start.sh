# Starts a session's program in its own image, with the BusyBox that was copied; nothing else of that image is used.
# `own/program` has its arguments and its environment, all of it quoted data.
busybox=/sublet/bin/busybox dir=/sublet/session own=/sublet/own
exec 4>/dev/null 2>&4
cd "$dir" || exit 70
. "$own/program"

has_program() { # looks as the system does
    case $first in
        */*) (cd work && [ -f "$first" ] && [ -x "$first" ]) ;;
        *)
            (
                IFS=:
                for place in $PATH; do [ -f "${place:-.}/$first" ] && [ -x "${place:-.}/$first" ] && exit 0; done
                exit 1
            )
            ;;
    esac
}

run() {
    export HOME=$dir/work TMPDIR=$dir/tmp SUBLET_SESSION="$session" SUBLET_DATA=$dir/data SUBLET_WARNING=$dir/warning
    export PYTHONUNBUFFERED=1 LANG="${LANG:-C.UTF-8}"
    SUBLET_UNTIL=$($busybox date -u -d "@$((began + duration))" +%Y-%m-%dT%H:%M:%SZ)
    export SUBLET_UNTIL
    [ -r "$own/node" ] && read -r SUBLET_NODE_NUMBER SUBLET_FIRST_NODE <"$own/node" && export SUBLET_NODE_NUMBER SUBLET_FIRST_NODE
    environment
    cd work || exit 70
    program
}

peak() { # prints the peak memory by the cgroup
    for file in /sys/fs/cgroup/memory.peak /sys/fs/cgroup/memory/memory.max_usage_in_bytes; do
        [ -r "$file" ] && IFS= read -r bytes <"$file" && printf '%s' "$bytes" && return
    done
    printf 0
}

count_killed() { # prints how many of its processes the kernel killed for lack of memory
    for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
        [ -r "$file" ] || continue
        while read -r name number; do [ "$name" = oom_kill ] && printf '%s' "$number" && return; done <"$file"
    done
    printf 0
}

began=$($busybox date +%s)
if ! has_program; then
    printf 'not-started\n%s\n' "$missing" >unstarted
    exit 127
fi
: >stdout
: >stderr
trap '[ -n "$child" ] && kill -TERM "$child"' TERM
(run) </dev/null >stdout 2>stderr 4>&- &
child=$!
while :; do
    wait "$child"
    code=$?
    kill -0 "$child" || break # otherwise the signal ended the wait
done
times >"$own/times"
peak >"$own/peak"
count_killed >"$own/killed"
printf '%s\n' "$code" >"$own/code"
exit "$code"
