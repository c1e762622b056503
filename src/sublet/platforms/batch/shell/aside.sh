# For scripts that remove directories: `aside DIRECTORY NAME` moves one to $trash/NAME, so that a half-removed directory
# is never seen. The trash is removed when it is empty, which another process may do at any moment, so this retries.
# Returns 1 if the directory is gone, 73 if it can't be moved.
aside() {
    tries=0 said=
    while [ -d "$1" ]; do
        mkdir -p "$trash" && said=$(mv "$1" "$trash/$2" 2>&1) && return 0
        tries=$((tries + 1))
        [ "$tries" -lt 20 ] || { printf '%s\n' "$said" >&2; return 73; }
    done
    return 1
}
