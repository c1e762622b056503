# Makes the directory that a session's data is sent to before it is submitted, and says whose it is. Arguments: the root
# directory, the key and the service's own name.
umask 077
tries=20 # whoever cleans up after the last session of all may remove what is empty meanwhile
until mkdir -p -m 700 "$1/incoming" && mkdir -p "$1/incoming/$2"; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || exit 1
done
own "$1" "$1/incoming" || { code=$?; rmdir "$1/incoming/$2" 2>/dev/null; exit "$code"; }
printf '%s\n' "$3" >"$1/incoming/$2/owner"
