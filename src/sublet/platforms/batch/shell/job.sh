# The job of one session, in POSIX sh and coreutils (grep too, if installed). Its argument is the session's directory:
#
#   life.sh     what is done with a program on every platform
#   program     what to run and with what, written by the service; all of it is quoted data (0600: it may contain secrets)
#   ran/        made first of all; if it exists already, the script exits: nothing runs twice
#   work/       the working directory; stdout, stderr: the program's output; `$job_log`: the scheduler's messages
#   unstarted   written by a kind if nothing was run: a kind of end, and why (as JSON), a line each
#   detail      written by a kind: how its program ended, as JSON
#   nodes.sh    runs a program on each of several nodes, where the scheduler's own tools don't
#   connector   what it serves, and on which node and port, once it does
#   until       the moved end of its time;  cancel: who cancelled it;  warning: when it ends, shortly before
#   end.json    how it ended: its space is reserved beforehand, in case the disk is full, and it is renamed into place
#   parts       how many parts there are, if several: then this runs as an array of jobs, and each part has its own
#               ran/, stdout, stderr, warning and end.json in part/N/, and all of them share work/ and claims/
#
# The program runs in the foreground, and a watcher beside it keeps its time. Every process of the program is identified
# by SUBLET_SESSION in its environment (of a part by SUBLET_MARK), wherever it is on this node.
#
# The scheduler's own part stands before it, and defines for this job
#
#   scheduler   the scheduler's name for people;  job_log: the file in the session's directory that the scheduler writes
#   job_id      its number;  job_nodes: how many nodes it has;  job_disk: a directory of its own on the node, if any
#   job_part    which part it is, from 0 on;  part_id N: the number of another part
#   drop_parts  ends queued parts, by their numbers: nothing is left for them to do
#   in_job      whether a memory cgroup, by its path, is this job's or below it
#   job_listens set if the scheduler would kill a cancelled job at once, or signals only one of its processes: then the
#               job itself watches for its cancellation

PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}
export PATH
cd "$1" || exit 70
dir=$PWD part=$job_part parts=1
[ -r parts ] && read -r parts <parts
if [ "$parts" -gt 1 ]; then
    mkdir -p "part/$part" claims && cd "part/$part" || exit 70
fi
own=$PWD
termed= scratch= short=
trap 'termed=1' TERM # from the first moment on: a job that began has a record of its end
mkdir ran || exit 71
printf '%s\n' "$job_id" >ran/id
now=
while [ -z "$now" ]; do now=$(date +%s.%N); done # the same signal may have stopped it
began=${now%.*}
printf '%s\n' "$now" >ran/began
uname -n >ran/node
printf '%2000s' '' >end.part
. "$dir/program"
. "$dir/life.sh"
PATH=${places:+$places:}$PATH
mark=SUBLET_SESSION=$session
[ "$parts" -gt 1 ] && mark=SUBLET_MARK=$session.$part.

trap '' HUP

memory_groups() { # prints the directories of the memory cgroups of this job, the innermost first
    at=
    while IFS=: read -r _ names path; do
        case ",$names," in
            *,memory,*) at=/sys/fs/cgroup/memory$path ;;
            ,,) [ -n "$at" ] || at=/sys/fs/cgroup$path ;;
        esac
    done </proc/self/cgroup
    while [ -d "$at" ]; do
        in_job "$at" || break
        printf '%s\n' "$at"
        at=${at%/*}
    done
}

memory_facts() { # sets `peak` in bytes and `oom`, as far as a cgroup tells
    peak=0 oom=false
    for group in $(memory_groups); do
        for file in memory.max_usage_in_bytes memory.peak; do
            used=$(said "$group/$file")
            [ "${used:-0}" -gt "$peak" ] 2>/dev/null && peak=$used
        done
        for file in memory.oom_control memory.events; do
            [ -r "$group/$file" ] && while read -r word count; do
                [ "$word" = oom_kill ] && [ "$count" -gt 0 ] && oom=true
            done <"$group/$file"
        done
    done
}

record() { # arguments: kind, code, by and detail (both as JSON)
    trap '' TERM INT # schedulers may signal all processes of a job, also those that write its end
    memory_facts
    times >ran/times
    { read -r _; read -r spent; } <ran/times
    printf '{"kind":"%s","code":%s,"by":%s,"detail":%s,"started":%s,"ended":%s,"job":"%s","node":"%s","times":"%s","peak":%s,"oom":%s}' \
        "$1" "$2" "$3" "$4" "$(said ran/began)" "$(date +%s.%N)" "$job_id" "$(said ran/node)" "$spent" "$peak" "$oom" |
        dd of=end.part conv=notrunc 2>/dev/null && mv end.part end.json
}

finish() {
    [ -n "$short" ] && rm -f "$short"
    [ -n "$scratch" ] && chmod -R u+rwX "$scratch" 2>/dev/null
    [ -n "$scratch" ] && rm -rf "$scratch"
    record "$@"
    exit "$2"
}

born() { # prints when a process began, as the kernel counts it
    [ -r "/proc/$1/stat" ] && IFS= read -r line <"/proc/$1/stat" || return 1
    set -- ${line##*) }
    printf '%s' "${20}"
}

sweep() ( # removes the remains of killed jobs on this node's disk: a name says which process it belongs to
    cd "$1" || return
    find . -maxdepth 1 -type d -name 'sublet.*.*.*' -user "$(id -u)" 2>/dev/null | while IFS=. read -r _ _ pid began rest; do
        case $pid,$began in *[!0-9,]* | ,* | *,) continue ;; esac
        [ "$(born "$pid")" = "$began" ] && continue
        chmod -R u+rwX "sublet.$pid.$began.$rest" 2>/dev/null
        rm -rf "sublet.$pid.$began.$rest"
    done
)

load() { # loads modules, where the system has them
    if ! command -v module >/dev/null 2>&1; then
        for file in /etc/profile.d/modules.sh /etc/profile.d/lmod.sh /usr/share/lmod/lmod/init/sh /usr/share/modules/init/sh; do
            [ -r "$file" ] && . "$file" && break
        done
    fi
    for name; do module load "$name"; done
}

listens() { # whether something listens on a port; with `ours`, whether it is this user: another one could have been quicker
    hex=$(printf '%04X' "$1") me=$(id -u)
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | while read -r _ at _ state _ _ _ uid _; do
        case $at in *:$hex) [ "$state" = 0A ] && { [ "$2" != ours ] || [ "$uid" = "$me" ]; } && echo yes ;; esac
    done | read -r _
}

choose_port() { # a free port, below those used for outgoing connections
    tries=50
    while [ "$tries" -gt 0 ]; do
        port=$((10000 + $(od -An -N2 -tu2 /dev/urandom) % 22000))
        listens "$port" anyone || return 0
        tries=$((tries - 1))
    done
}

announce() { # records where the program listens, once it does
    trap - TERM
    until listens "$port" ours; do sleep 0.2; done
    printf '%s %s:%s\n' "$connects" "$(said ran/node)" "$port" >connector.part && mv connector.part connector
}

ends() { # prints the end of its time, in seconds since the epoch
    over=$((began + duration))
    moved=$(said "$dir/until")
    [ "${moved:-0}" -gt "$over" ] && over=$moved
    printf '%s' "$over"
}

nap() {
    sleep "$1" &
    wait "$!"
    kill -s KILL "$!" 2>/dev/null
}

watch() { # keeps its time: warns, and stops it at the end; also enforces a stop by others
    stopped= warned= others=$!
    trap 'stopped=1' TERM
    trap '[ "$!" = "$others" ] || kill -s KILL "$!" 2>/dev/null; exit 0' USR1 # a nap that has only just begun would miss a TERM
    [ -n "$job_listens" ] && [ -e "$dir/cancel" ] && stopped=1 # the listener's signal may have come before the trap
    while :; do
        [ -n "$stopped" ] && { trap '' TERM; date +%s >ran/term; nap "$grace"; signal_all KILL; exit 0; }
        now=$(date +%s) over=$(ends)
        [ -n "$now" ] && [ -n "$over" ] && [ -z "$stopped" ] || continue # a stop signal may have killed these commands too
        left=$((over - grace - now))
        [ "$left" -le 0 ] && break
        if [ $((left + grace - warn)) -gt 0 ]; then
            [ -z "$warned" ] && [ "$warn" -gt 0 ] && left=$((left + grace - warn))
        elif [ "$warn" -gt 0 ] && [ "$warned" != "$over" ]; then
            warned=$over
            clock "$over" >warning.part && mv warning.part warning
            printf 'sublet: this session ends at %s\n' "$(local_clock "$over")" >>stderr
        fi
        nap "$left"
    done
    date +%s >ran/time
    trap '' TERM
    stop_all "$grace"
}

listen() { # waits for a cancellation, then signals all processes, as other schedulers do; the argument is the watcher
    trap - TERM
    while kill -0 $$ 2>/dev/null; do
        if [ -e "$dir/cancel" ]; then
            kill -s TERM "$1" $$
            until signal_all TERM; do kill -0 $$ 2>/dev/null && sleep 0.2 || return; done # the program may be about to start
            return
        fi
        sleep 2
    done
}

run() { # becomes the program; from here on its processes carry the mark
    trap - TERM HUP
    unset TZ LC_ALL
    LANG=${LANG:-C.UTF-8}
    TMPDIR=${short:-$scratch} SUBLET_NODE_SCRATCH=$disk SUBLET_JOB=$job_id
    SUBLET_SESSION=$session SUBLET_DATA=$dir/data SUBLET_WARNING=$own/warning
    SUBLET_UNTIL=$(clock "$(ends)") SUBLET_PART=$part SUBLET_PARTS=$parts
    export LANG TMPDIR SUBLET_NODE_SCRATCH SUBLET_JOB SUBLET_SESSION SUBLET_DATA SUBLET_WARNING SUBLET_UNTIL SUBLET_PART SUBLET_PARTS
    [ "$parts" -gt 1 ] && export "$mark" "SUBLET_CLAIMS=$dir/claims"
    [ -e "$dir/nodes.sh" ] && export "SUBLET_ON_NODES=$dir/nodes.sh"
    [ -n "$connects" ] && export SUBLET_HOST=0.0.0.0 SUBLET_PORT="$port" # the login host connects from outside; a secret protects it
    environment
    cd "$dir/work" || exit 70
    program
}

spare() { # ends the parts that have not begun, when nothing is left for them to do
    [ -e "$dir/claims/none-left" ] && mkdir "$dir/claims/spared" 2>/dev/null || return 0
    waiting= other=0
    while [ "$other" -lt "$parts" ]; do
        mkdir -p "$dir/part/$other"
        if mkdir "$dir/part/$other/ran" 2>/dev/null; then
            now=$(date +%s) id=$(part_id "$other")
            printf '{"kind":"exited","code":0,"by":"","detail":"","started":%s,"ended":%s,"job":"%s"}' \
                "$now" "$now" "$id" >"$dir/part/$other/end.part" &&
                mv "$dir/part/$other/end.part" "$dir/part/$other/end.json"
            waiting="$waiting $id"
        fi
        other=$((other + 1))
    done
    [ -z "$waiting" ] || drop_parts $waiting >/dev/null 2>&1
}

[ -e "$dir/cancel" ] && finish cancelled 143 "$(said "$dir/cancel")" '"it had not started"'
for disk in "$local_scratch" "$job_disk" "$TMPDIR" /tmp ''; do
    [ -n "$disk" ] && [ -d "$disk" ] && [ -w "$disk" ] || continue
    sheltered "$disk" || { echo "sublet: $disk is not used: everyone can write there, and it has no sticky bit" >>"$job_log"; continue; }
    [ "$job_nodes" -gt 1 ] && break # other nodes don't see a directory on this one, and theirs would never be removed
    sweep "$disk"
    scratch=$(mktemp -d "$disk/sublet.$$.$(born $$).XXXXXX") && break
done
if [ -n "$scratch" ]; then
    shorten "$scratch" /tmp /var/tmp /dev/shm
else # on the shared disk, where every node sees the short path too
    mkdir -p "${scratch:=$own/tmp}" && mkdir -p -m 700 "${dir%/sessions/*}/t" && shorten "$scratch" "${dir%/sessions/*}/t"
fi
: >>stdout
: >>stderr
modules >>"$job_log" 2>&1
(cd "$dir" && links)
find_program || finish not-started 127 '""' "$missing"

[ -n "$connects" ] && { choose_port; announce & }
announcer=${connects:+$!}

[ -n "$job_listens" ] && trap '' TERM # so that the listener's signal doesn't kill the watcher before its trap is set
watch &
watcher=$!
trap 'termed=1' TERM
[ -n "$job_listens" ] && { listen "$watcher" & }
listener=${job_listens:+$!}
if [ -n "$termed" ] && [ -e "$dir/cancel" ]; then
    kill -s USR1 "$watcher" 2>/dev/null
    [ -n "$announcer$listener" ] && kill $announcer $listener 2>/dev/null
    finish cancelled 143 "$(said "$dir/cancel")" '"it had not started"'
fi
(run) </dev/null >>stdout 2>>stderr
code=$?
kill -s USR1 "$watcher" 2>/dev/null
[ -n "$announcer$listener" ] && kill $announcer $listener 2>/dev/null
[ -e ran/time ] || stop_all 1

if [ -n "$termed" ] || [ -e ran/term ]; then
    [ -e "$dir/cancel" ] && finish cancelled "$code" "$(said "$dir/cancel")" '""'
    spent=$(($(date +%s) - began))
    [ "$spent" -ge $((limit - 10)) ] && finish timeout "$code" '""' "\"$scheduler's time limit was reached\""
    [ -e ran/time ] || finish terminated "$code" '""' '""'
fi
[ -e ran/time ] && finish timeout "$code" '""' '""'
[ "$code" = 143 ] && [ -e "$dir/cancel" ] && finish cancelled "$code" "$(said "$dir/cancel")" '""'
if [ -s "$dir/unstarted" ]; then
    { read -r kind; IFS= read -r why; } <"$dir/unstarted"
    case $kind in staging-failed) ;; *) kind=not-started ;; esac
    finish "$kind" "$code" '""' "${why:-\"\"}"
fi
spare
detail=$(said "$dir/detail")
finish exited "$code" '""' "${detail:-\"\"}"
