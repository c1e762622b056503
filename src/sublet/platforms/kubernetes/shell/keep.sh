# Runs beside a session's program: watches its time, stops it on request, and keeps its results until they were fetched.
# Arguments: seconds to keep the results; seconds between TERM and KILL. It sees every process of the pod; those of the
# program are the ones in another cgroup than its own.
keep=$1 grace=$2
cd /sublet
read_group() { # of a process; sets `group`
    group=
    while IFS= read -r line; do group="$group$line;"; done <"/proc/$1/cgroup"
}
read_group self
mine=$group

find_theirs() { # sets `theirs`
    theirs=
    for entry in /proc/[0-9]*; do
        pid=${entry#/proc/}
        [ "$pid" = 1 ] && continue # it holds the pod's namespaces
        read_group "$pid" 2>/dev/null
        [ -n "$group" ] && [ "$group" != "$mine" ] && theirs="$theirs $pid"
    done
}

stop_all() { # TERM first, then KILL
    kill -TERM $theirs 2>/dev/null
    kill -CONT $theirs 2>/dev/null
    left=$((grace * 5))
    while find_theirs; [ -n "$theirs" ] && [ "$left" -gt 0 ]; do
        left=$((left - 1))
        sleep 0.2
    done
    while find_theirs; [ -n "$theirs" ]; do
        kill -KILL $theirs 2>/dev/null
        sleep 0.1
    done
}

read_number() { # a file's first line; sets `number`
    number=
    [ -r "$1" ] && IFS= read -r number <"$1"
}

watch_time() { # the time that the program was given, or its moved end
    over=$((began + duration))
    read_number own/until
    [ -n "$number" ] && over=$number
    left=$((over - now))
    if [ "$left" -le "$short" ]; then
        : >own/time
        stop_all
    elif [ "$warn" -gt 0 ] && [ "$left" -le "$warn" ] && [ "$warned" != "$over" ]; then
        warned=$over
        date -u -d "@$over" +%Y-%m-%dT%H:%M:%SZ >session/warning
        date -u -d "@$over" +'sublet: this session ends at %H:%M:%S UTC on %Y-%m-%d' >>session/stderr
    fi
}

. own/program # `duration` and `warn`
warned= began= last=$(date +%s)
short=$((duration / 4 < grace ? duration / 4 : grace))
while [ ! -e own/done ]; do
    now=$(date +%s)
    find_theirs
    if [ -n "$theirs" ]; then
        last=$now
        began=${began:-$now}
        if [ -e own/cancel ]; then stop_all; else watch_time; fi
    elif [ "$((now - last))" -gt "$keep" ]; then
        exit 0
    fi
    sleep 0.5
done
