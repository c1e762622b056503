# For what removes directories: `aside DIRECTORY NAME` moves one to $trash/NAME, where no half of it is ever seen. The trash goes
# when it is empty, so another one's end may take it away just now. Returns 1 if the directory is gone, 73 if it can't be moved.
aside() {
    tries=0 said=
    while [ -d "$1" ]; do
        mkdir -p "$trash" && said=$(mv "$1" "$trash/$2" 2>&1) && return 0
        tries=$((tries + 1))
        [ "$tries" -lt 20 ] || { printf '%s\n' "$said" >&2; return 73; }
    done
    return 1
}
