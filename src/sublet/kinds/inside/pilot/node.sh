# The start of one node's pilot: makes a directory on the node's own disk, claims its place in the lease, and executes
# what it is given for it. Leftovers of pilots that died on this node are removed.

here=$(cd "${0%/*}" && pwd) || exit 85
. "$here/values"
. "$here/ask.sh"
carry=${SUBLET_CARRY:-$carry} # set by a pilot that has tried the other way
number=${SLURM_PROCID:-${SUBLET_NODE_NUMBER:-0}}
node=${SLURMD_NODENAME:-${SUBLET_NODE_NAME:-$(uname -n)}}
dir=
umask 077

fail() { # exit code, message
    printf 'pilot: %s on %s: %s\n' "$number" "$node" "$2" >&2
    exit "$1"
}

places() { # where a node's local disk may be, best first
    printf '%s\n' "${SLURM_TMPDIR:-}"
    printf '%s\n' "${SUBLET_NODE_SCRATCH:-}"
    printf '%s\n' /tmp /var/tmp
}

make_place() { # a new directory where programs can be executed, and that others can't replace
    case $(LC_ALL=C ls -ldnL "$1" 2>/dev/null) in '' | ????????w[!tT]*) return 1 ;; esac
    dir=$(mktemp -d "$1/sublet-pilot.XXXXXX" 2>/dev/null) || return 1
    printf '#!/bin/sh\n' >"$dir/try" && chmod 700 "$dir/try" && "$dir/try" 2>/dev/null && rm "$dir/try" && return 0
    rm -rf "$dir"
    return 1
}

born() { # when a process began, in the kernel's clock ticks
    read -r line <"/proc/$1/stat" 2>/dev/null || return 1
    line=${line##*) }
    set -- $line
    printf '%s' "${20}"
}

sweep() { # removes what our dead pilots left there
    find "$1" -maxdepth 1 -type d -name 'sublet-pilot.*' -user "$(id -u)" -mmin +1 2>/dev/null | while IFS= read -r left; do
        pid= began=
        [ -r "$left/process" ] && read -r pid began <"$left/process"
        [ -n "$pid" ] && [ "$(born "$pid")" = "$began" ] && continue
        chmod -R u+rwX "$left" 2>/dev/null
        rm -rf "$left"
    done
}

tell() { # describes this node, one value per line
    printf 'token=%s\nnonce=%s\nnode=%s\njob=%s\n' "$token" "$nonce" "$node" "${SUBLET_JOB:-${SLURM_JOB_ID:-}}"
    printf 'arch=%s\nlibc=%s\n' "$(uname -m)" "$(getconf GNU_LIBC_VERSION 2>/dev/null)"
}

trap '[ -n "$dir" ] && rm -rf "$dir"' EXIT
trap 'exit 143' TERM INT HUP
for place in $(places); do
    [ -d "$place" ] && [ -w "$place" ] || continue
    sweep "$place"
    make_place "$place" && break
    dir=
done
[ -n "$dir" ] || fail 85 "no directory of the node's own can be written to and run programs from ($(places | tr '\n' ' '))"
cd "$dir" || exit 85
printf '%s %s\n' "$$" "$(born "$$")" >process

ask_service() { # over the network; `words` explains a failure
    pause=1 until=$(($(date +%s) + $1))
    while :; do
        ask "/pilots/$lease/$number/claim" said bundle.tar
        code=$?
        [ "$code" = 0 ] && return 0
        [ "$code" = 2 ] && fail 82 "the service refused it: $words"
        [ "$(date +%s)" -lt "$until" ] || return 1
        sleep "$pause"
        pause=$((pause * 2))
    done
}

ask_spool() { # through a directory shared with the login host, where the service looks when nodes are silent
    spool=${here%%/work/*}/spool
    mkdir -p "$spool/tmp" "$spool/ask" "$spool/ans" || return 1
    cp said "$spool/tmp/ask.$number" && mv "$spool/tmp/ask.$number" "$spool/ask/$number" || return 1
    left=1500
    until [ -f "$spool/ans/$number.tar" ]; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || { rm -f "$spool/ask/$number"; return 1; }
        sleep 0.2
    done
    mv "$spool/ans/$number.tar" bundle.tar || return 1
    case $(head -c 8 bundle.tar) in refused:) fail 82 "the service refused it: $(head -n 1 bundle.tar | cut -c 10-300)" ;; esac
    export SUBLET_FAR_spool="$spool"
}

nonce=${SUBLET_NONCE:-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')}
tell >said
case $carry in
    spool) ask_spool || fail 81 "nobody answered through $spool" ;;
    direct) ask_service 20 || fail 81 "the service can't be reached: $words" ;;
    *)
        ask_service 2 || {
            before=$words
            ask_spool || fail 81 "the service can't be reached: $before; and nobody answered through $spool"
        }
        ;;
esac
tar xf bundle.tar || fail 82 "the service's answer can't be read"
[ -n "${SUBLET_FAR_spool:-}" ] && mv said asked # needed again to ask for more
rm -f said bundle.tar*
export SUBLET_PILOT="$dir" SUBLET_NODE="$node" SUBLET_KEPT="${here%/sessions/*}/kept"
export SUBLET_START="$here" SUBLET_CARRY="$carry" SUBLET_NONCE="$nonce"
trap - EXIT
exec sh "$dir/pilot.sh"
