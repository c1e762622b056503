# Submits one session, once. The scheduler's own part (see scripts.py) stands before it. Arguments: the root directory,
# the key, then words for the scheduler. Stdin: the session's own files, each as a line `MODE SIZE PATH` and its bytes,
# or as `line WORD PATH`; the path as `=PATH`, or with a dot in base64. It starts as few processes as possible, because
# a person is waiting. Answers `known`, or `submitted ID`. Exit codes: 73 the files could not be written; 77 others
# could change them; 75 the scheduler refused; 76 the scheduler may or may not have the job: then the files stay.

root=$1 key=$2
shift 2
dir=$root/sessions/$key sent=$root/incoming/$key
trap '' HUP PIPE # from here on it runs to its end, even if the connection is lost
old=$(umask)
umask 077
for try in 1 2 3; do # its parents may not exist yet, or be removed with another session, at any moment
    mkdir "$dir" 2>/dev/null && break
    [ -d "$dir" ] && { echo known; exit 0; }
    [ "$try" = 3 ] && { mkdir "$dir"; exit 73; }
    mkdir -p -m 700 "$root/sessions" || exit 73
done
own "$root" "$root/sessions" || { code=$?; rmdir "$dir"; exit "$code"; } # they may have been replaced since they were made
cd "$dir" || exit 73

back() { # nothing was submitted: undo everything, but keep the data that was sent
    mkdir -p "$sent" && for part in data storage work owner; do [ -e "$part" ] && mv "$part" "$sent/"; done
    cd "$root" && rm -rf "$dir"
    exit "$1"
}

for part in data storage work; do
    [ -d "$sent/$part" ] && { mv "$sent/$part" . || back 73; }
done
list() { # as in results.sh
    find . -path ./.sublet -prune -o -type f -exec stat --printf='%s %Y %n\0' {} + -o -type d -empty ! -path . -printf 'd 0 %p\0'
}
[ -d work ] && (cd work && list | LC_ALL=C sort -z) >brought
[ -d "$sent" ] && rm -rf "$sent"
mkdir -p work data tmp || back 73
while read -r mode size path; do
    case $path in =*) path=${path#=} ;; *) path=$(printf '%s' "$path" | base64 -d) && path=${path%.} ;; esac
    case $path in */*) [ -d "${path%/*}" ] || mkdir -p "${path%/*}" || back 73 ;; esac
    case $mode in
        line) printf '%s\n' "$size" >"$path" || back 73 ;;
        600) head -c "$size" >"$path" || back 73 ;; # by the umask
        *) head -c "$size" >"$path" && chmod "$mode" "$path" || back 73 ;;
    esac
done
said=$(
    umask "$old"
    submit_job "$@" 2>submit.log </dev/null
)
code=$?
if [ "$code" = 0 ]; then
    read_id
    printf '%s\n' "$id" >id
    echo "submitted $id"
    exit 0
fi
cat submit.log >&2
is_unsure && exit 76
case $code in 124 | 137 | 143) exit 76 ;; esac # it was interrupted
back 75
