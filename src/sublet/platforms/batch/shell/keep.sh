# Notes that a file which many share is needed, and says whether it is there: `there` or `missing`. Arguments: the root
# directory, the file's name in `kept`, the session that needs it (or nothing), the service's own name, and perhaps what people call it.
#
#   kept/NAME/content   the file, read-only, once it is whole
#   kept/NAME/NAME      the same file, by a name that no other has
#   kept/NAME/users/    a file for each session that needs it: one that is neither in sessions/ nor in incoming/ counts no more
#   kept/NAME/used      when it was last needed
#   kept/NAME/label     what people call it
root=$1 name=$2 key=$3 owner=$4
case $name$key in */* | .*) exit 64 ;; esac
umask 077
mkdir -p -m 700 "$root/kept" || exit 73
own "$root" "$root/kept" || exit
mkdir -p "$root/kept/$name/users" || exit 73
if [ -n "$key" ]; then
    if [ ! -d "$root/sessions/$key" ]; then
        for try in 1 2 3; do # an empty directory goes with another one's end, also just now
            mkdir -p -m 700 "$root/incoming" || exit 73
            own "$root/incoming" || { code=$?; [ -e "$root/incoming" ] && exit "$code"; continue; }
            mkdir -p "$root/incoming/$key" && break
        done
        printf '%s\n' "$owner" >"$root/incoming/$key/owner" || exit 73
    fi
    : >"$root/kept/$name/users/$key" || exit 73
fi
: >"$root/kept/$name/used" || exit 73
[ -z "$5" ] || [ -e "$root/kept/$name/label" ] || printf '%s\n' "$5" >"$root/kept/$name/label" || exit 73
[ -f "$root/kept/$name/content" ] && ln -f "$root/kept/$name/content" "$root/kept/$name/$name" 2>/dev/null
if [ -e "$root/kept/$name/content" ]; then echo there; else echo missing; fi
