# What every job script of ours does with its program: lay out what it wants to see, find it, and stop all its processes. POSIX
# sh and coreutils (grep too, where there is one). Needs `dir`, the session's directory; `first`, the name of the program; and
# `mark`, the variable with its value by which each of its processes is known, wherever it went on this node.

said() { # the first line of a file, else nothing
    line=
    [ -r "$1" ] && IFS= read -r line <"$1"
    printf '%s' "$line"
}

clock() { date -u -d "@$1" +%Y-%m-%dT%H:%M:%SZ; }

local_clock() { date -d "@$1" +'%H:%M:%S %Z on %Y-%m-%d'; } # for those who read what the program prints

marked() {
    grep -lsF "$mark" /proc/[0-9]*/environ | while IFS=/ read -r _ _ pid _; do printf '%s ' "$pid"; done
}

signal_all() { # every process of the program; false if there is none
    pids=$(marked)
    [ -n "$pids" ] || return 1
    kill -s "$1" $pids 2>/dev/null
    return 0 # one that ended meanwhile is no failure
}

stop_all() { # first by a word, then, after so many seconds, by force
    signal_all TERM || return 0
    signal_all CONT
    left=$(($1 * 5))
    while [ "$left" -gt 0 ] && [ -n "$(marked)" ]; do
        sleep 0.2
        left=$((left - 1))
    done
    tries=20
    while [ "$tries" -gt 0 ] && signal_all KILL; do
        sleep 0.05
        tries=$((tries - 1))
    done
}

sheltered() { # whether not everyone can put something else in the place of what is made in a directory
    case $(LC_ALL=C ls -ldnL "$1" 2>/dev/null) in '' | ????????w[!tT]*) return 1 ;; esac
}

shorten() { # a directory, then places for a link to it; sets `short`: the path of a Unix socket has room for 107 characters only
    to=$1 short=
    shift
    [ "${#to}" -gt 40 ] || return 0
    for place; do
        [ -d "$place" ] && [ -w "$place" ] && { [ -k "$place" ] || [ -O "$place" ]; } || continue
        sweep_links "$place"
        short=$place/sublet-$(od -An -N5 -tx1 /dev/urandom | tr -d ' \n')
        ln -sT "$to" "$short" 2>/dev/null && return 0
        short=
    done
}

sweep_links() { # what jobs that were killed left: links of ours that lead nowhere
    find "$1" -maxdepth 1 -type l -name 'sublet-??????????' -user "$(id -u)" ! -exec test -e {} \; -exec rm -f {} + 2>/dev/null
}

link() { # a part of the session's directory, as the program wants to see it below its working directory
    case $2 in */*) mkdir -p "work/${2%/*}" ;; esac
    [ -e "$1" ] || mkdir -p "$1"
    [ -d "work/$2" ] && [ ! -L "work/$2" ] && rmdir "work/$2"
    [ -L "work/$2" ] || ln -sn "$dir/$1" "work/$2"
    [ "$3" = 1 ] && chmod -R a-w "$1"
}

point() { # a path of the session's directory to a file that is kept for many
    case $1 in */*) mkdir -p "${1%/*}" ;; esac
    [ -L "$1" ] || ln -sn "$2" "$1"
}

find_program() { # as the system does, without the shell's own words
    case $first in
        */*) (cd "$dir/work" && [ -f "$first" ] && [ -x "$first" ]) ;;
        *)
            (
                IFS=:
                for place in $PATH; do [ -f "${place:-.}/$first" ] && [ -x "${place:-.}/$first" ] && exit 0; done
                exit 1
            )
            ;;
    esac
}
