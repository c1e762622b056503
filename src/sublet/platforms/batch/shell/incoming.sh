# Makes the directory to which a session's data is sent before it is submitted, and records its owner. Arguments: the
# root directory, the key and the service's own ID.
umask 077
tries=20 # cleaning up after the last session may remove empty directories meanwhile
until mkdir -p -m 700 "$1/incoming" && mkdir -p "$1/incoming/$2"; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || exit 1
done
own "$1" "$1/incoming" || { code=$?; rmdir "$1/incoming/$2" 2>/dev/null; exit "$code"; }
printf '%s\n' "$3" >"$1/incoming/$2/owner"
