# What every job script does with its program: lay out its files, find it, and stop all its processes. POSIX sh and
# coreutils (grep too, if installed). Needs `dir`, the session's directory; `first`, the name of the program; and
# `mark`, the environment variable and value that identify each of its processes on this node.

said() { # prints the first line of a file, if any
    line=
    [ -r "$1" ] && IFS= read -r line <"$1"
    printf '%s' "$line"
}

clock() { date -u -d "@$1" +%Y-%m-%dT%H:%M:%SZ; }

local_clock() { date -d "@$1" +'%H:%M:%S %Z on %Y-%m-%d'; } # for people who read the program's output

marked() {
    grep -lsF "$mark" /proc/[0-9]*/environ | while IFS=/ read -r _ _ pid _; do printf '%s ' "$pid"; done
}

signal_all() { # signals every process of the program; false if there is none
    pids=$(marked)
    [ -n "$pids" ] || return 1
    kill -s "$1" $pids 2>/dev/null
    return 0 # a process that ended meanwhile is no failure
}

stop_all() { # TERM first, then KILL after this many seconds
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

sheltered() { # whether a directory is safe from everyone replacing what is made in it
    case $(LC_ALL=C ls -ldnL "$1" 2>/dev/null) in '' | ????????w[!tT]*) return 1 ;; esac
}

shorten() { # arguments: a directory, then places for a link to it; sets `short`: a Unix socket's path has room for 107 characters only
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

sweep_links() { # removes the remains of killed jobs: dangling links of ours
    find "$1" -maxdepth 1 -type l -name 'sublet-??????????' -user "$(id -u)" ! -exec test -e {} \; -exec rm -f {} + 2>/dev/null
}

link() { # links a part of the session's directory below the working directory
    case $2 in */*) mkdir -p "work/${2%/*}" ;; esac
    [ -e "$1" ] || mkdir -p "$1"
    [ -d "work/$2" ] && [ ! -L "work/$2" ] && rmdir "work/$2"
    [ -L "work/$2" ] || ln -sn "$dir/$1" "work/$2"
    [ "$3" = 1 ] && chmod -R a-w "$1"
}

point() { # links a path in the session's directory to a kept file
    case $1 in */*) mkdir -p "${1%/*}" ;; esac
    [ -L "$1" ] || ln -sn "$2" "$1"
}

find_program() { # looks as the system does, without shell builtins
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
