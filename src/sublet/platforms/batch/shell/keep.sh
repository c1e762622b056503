# Records that a shared file is needed, and answers whether it exists: `there` or `missing`. Arguments: the root directory,
# the file's name in `kept`, the session that needs it (or empty), the service's own ID, and optionally its label.
#
#   kept/NAME/content   the file, read-only, once it is complete
#   kept/NAME/NAME      the same file, by a unique name
#   kept/NAME/users/    a file for each session that needs it; those that are gone or over don't count (needs.sh)
#   kept/NAME/used      when it was last needed
#   kept/NAME/label     its name for people
root=$1 name=$2 key=$3 owner=$4
case $name$key in */* | .*) exit 64 ;; esac
umask 077
note() { # does all of it; 73 if something can't be made
    mkdir -p -m 700 "$root/kept" || return 73
    own "$root" "$root/kept" || { code=$?; [ -e "$root/kept" ] && return "$code"; return 73; }
    mkdir -p "$root/kept/$name/users" || return 73
    if [ -n "$key" ]; then
        if [ ! -d "$root/sessions/$key" ]; then
            mkdir -p -m 700 "$root/incoming" || return 73
            own "$root/incoming" || { code=$?; [ -e "$root/incoming" ] && return "$code"; return 73; }
            mkdir -p "$root/incoming/$key" && printf '%s\n' "$owner" >"$root/incoming/$key/owner" || return 73
        fi
        : >"$root/kept/$name/users/$key" || return 73
    fi
    : >"$root/kept/$name/used" || return 73
    [ -z "$1" ] || [ -e "$root/kept/$name/label" ] || printf '%s\n' "$1" >"$root/kept/$name/label" || return 73
}
for try in 1 2 3 4 5 6 7 8 9; do # cleaning up after another session may remove empty directories at any moment
    said=$(note "$5" 2>&1)
    code=$?
    [ "$code" = 73 ] || break
done
[ "$code" = 0 ] || { printf '%s\n' "$said" >&2; exit "$code"; }
[ -f "$root/kept/$name/content" ] && ln -f "$root/kept/$name/content" "$root/kept/$name/$name" 2>/dev/null
if [ -e "$root/kept/$name/content" ]; then echo there; else echo missing; fi
