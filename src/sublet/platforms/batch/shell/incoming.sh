# Makes the directory that a session's data is sent to before it is submitted, and says whose it is. Arguments: the root
# directory, the key and the service's own name.
umask 077
mkdir -p -m 700 "$1/incoming" || exit 1
own "$1" "$1/incoming" || exit
mkdir -p "$1/incoming/$2" && printf '%s\n' "$3" >"$1/incoming/$2/owner"
