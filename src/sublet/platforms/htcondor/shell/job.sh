#!/bin/sh
# The job of one session on a node, in POSIX sh and coreutils (grep, sed and find too). HTCondor starts it in a directory with
#
#   program        what to run and with what, written by the service; all of it is quoted data
#   life.sh        what is done with a program on every platform
#   work/, data/   the working directory, and staged data; only work/ is sent back, and
#   record.json    how it ended: it exists from the start, so that there is always something to send back
#
# HTCondor streams the program's output. A watcher beside it checks its time and its memory. Every process of the program is
# identified by SUBLET_MARK in its environment, wherever it is on this node. A file `until` on the access point moves the end
# of its time: it is fetched by condor_chirp when the time seems to be over.

PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}
export PATH
cd "${_CONDOR_SCRATCH_DIR:-.}" || exit 70
exec 3>&2 2>/dev/null # a shell's messages about its processes are of no use
dir=$(pwd)
: >record.json
own=$(mktemp -d "$dir/.sublet.XXXXXX") || exit 70 # the job's own notes
began=$(date +%s)
date +%s.%N >"$own/began"
. ./program
. ./life.sh
short=
kept=$(sed -n 's/^SubletKept *= *"\(.*\)"$/\1/p' "$_CONDOR_JOB_AD")
mark=SUBLET_MARK=$session.${SUBLET_PART:-0}. # another part of the session may run beside this one

record() { # arguments: kind, code and detail (as JSON)
    times >"$own/times"
    { read -r _; read -r spent; } <"$own/times"
    printf '{"kind":"%s","code":%s,"detail":%s,"started":%s,"ended":%s,"node":"%s","times":"%s","peak":%s}\n' "$1" "$2" "$3" \
        "$(said "$own/began")" "$(date +%s.%N)" "$(uname -n)" "$spent" "$(($(said "$own/peak") + 0))" >record.part
    mv record.part record.json
}

finish() { # only files and directories can be sent back, and read-only ones cannot be removed
    trap '' TERM
    [ -n "$short" ] && rm -f "$short"
    chmod -R u+rwX work data storage kept
    find work ! -type f ! -type d -exec rm -f {} +
    leave_brought
    record "$@"
    rm -rf "$own"
    exit "$2"
}

list() { # lists the files in the working directory: size, time and name, with a zero byte after each
    find work -path work/.sublet -prune -o -type f -exec stat --printf='%s %.9Y %n\0' {} + | LC_ALL=C sort -z
}

leave_brought() { # staged files that have not changed need not be sent back
    [ -s "$own/brought" ] || return
    list | LC_ALL=C comm -z -12 - "$own/brought" | cut -z -d ' ' -f 3- | xargs -0 -r rm -f --
}

place() { # replaces the placeholder in a file by the session's directory
    sed "s|$placeholder|$dir|g" "$1" >"$own/placed" && cat "$own/placed" >"$1"
}

share() { # a shared file: from where this node's system keeps it, else as it came with the job
    mkdir -p "${1%/*}"
    case $kept in */"$2"/content) ln -sn "$kept" "$1" ;; *) mv "$2" "$1" ;; esac
}

chirp() { # HTCondor's channel from a job to its access point, where it is installed
    for tool in "$_CONDOR_BIN/../libexec/condor/condor_chirp" "$_CONDOR_BIN/condor_chirp" "$(command -v condor_chirp)"; do
        [ -x "$tool" ] && { "$tool" "$@" >/dev/null; return; }
    done
    return 1
}

moved() { # whether the end of its time was moved at the access point
    chirp fetch until "$own/until" && [ "$(($(said "$own/until") + 0))" -gt "$over" ] || return 1
    over=$(said "$own/until")
}

sum() { # adds up a line in a file of each process of the program, in KiB; sets `used`
    used=0
    for pid in $(marked); do
        while read -r name amount _; do
            [ "$name" = "$2" ] && used=$((used + amount)) && break
        done <"/proc/$pid/$1"
    done
}

memory() { # memory of all processes: measured quickly first, and if that is too much, without counting shared pages twice
    sum status VmRSS:
    [ "$used" -gt "$limit" ] && sum smaps_rollup Pss:
    [ "$((used * 1024))" -gt "$peak" ] && peak=$((used * 1024)) && printf '%s\n' "$peak" >"$own/peak"
}

watch() { # watches its time and its memory: warns, and stops it at the end
    warned= peak=0 over=$((began + duration))
    trap '' TERM
    while :; do
        memory
        if [ "$used" -gt "$limit" ]; then
            printf '%s\n' "$used" >"$own/memory"
            signal_all KILL
            exit 0
        fi
        left=$((over - grace - $(date +%s)))
        if [ "$left" -le 0 ]; then
            moved && continue
            break
        fi
        if [ "$warn" -gt 0 ] && [ "$((left + grace))" -le "$warn" ] && [ "$warned" != "$over" ]; then
            moved
            warned=$over
            clock "$over" >warning
            printf 'sublet: this session ends at %s\n' "$(local_clock "$over")" >&3
        fi
        sleep "$((left < 2 ? left : 2))" 3>&-
    done
    : >"$own/time"
    stop_all "$grace"
}

run() { # becomes the program; from here on its processes carry the mark
    trap - TERM HUP
    LANG=${LANG:-C.UTF-8}
    TMPDIR=${short:-$dir/tmp}
    SUBLET_SESSION=$session SUBLET_DATA=$dir/data SUBLET_WARNING=$dir/warning
    SUBLET_UNTIL=$(clock "$((began + duration))")
    export LANG TMPDIR SUBLET_SESSION SUBLET_DATA SUBLET_WARNING SUBLET_UNTIL "$mark"
    environment
    cd work || exit 70
    program
}

case $dir in *[!A-Za-z0-9/._+@:,=-]*) finish not-started 70 '"the node gave it a directory with an odd name"' ;; esac
mkdir -p tmp data
list >"$own/brought"
shorten "$dir/tmp" /tmp /var/tmp /dev/shm
links
files
find_program || finish not-started 127 "$missing"

termed=
trap '' HUP
trap 'termed=1' TERM
(run) </dev/null 2>&3 3>&- &
child=$!
watch >/dev/null &
watcher=$!
while :; do
    wait "$child"
    code=$?
    if [ -n "$termed" ]; then
        stop_all "$grace"
        wait "$child"
        code=$?
        break
    fi
    kill -0 "$child" || break
done
if [ -e "$own/time" ]; then
    wait "$watcher"
else
    kill -s KILL "$watcher"
fi
stop_all 1

[ -n "$termed" ] && finish terminated "$code" '""'
[ -e "$own/time" ] && finish timeout "$code" '""'
[ -e "$own/memory" ] && finish out-of-memory "$code" "\"it used $(said "$own/memory") KiB\""
if [ -s unstarted ]; then # written by a kind if nothing was run, with the reason
    { read -r kind; IFS= read -r why; } <unstarted
    case $kind in staging-failed) ;; *) kind=not-started ;; esac
    finish "$kind" "$code" "${why:-\"\"}"
fi
detail=$(said detail) # written by a kind: how its program ended, as JSON
finish exited "$code" "${detail:-\"\"}"
