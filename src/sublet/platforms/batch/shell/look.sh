# Prints what the files of these sessions say, one line each, and one for each part of sessions in parts, as KEY/N.
# Arguments: the root directory, then keys. It uses only shell builtins, so that a thousand sessions don't cost a
# thousand processes.

root=$1
shift
said() {
    line=
    [ -r "$1" ] && IFS= read -r line <"$1"
    printf '\t%s' "$line"
}
records() { # of the session or part that has them in this directory
    flags=c
    [ -d "$1/ran" ] && flags=${flags}r
    [ -e "$1/ran/time" ] && flags=${flags}t
    [ -e "$1/ran/term" ] && flags=${flags}k
    [ -e paused ] && flags=${flags}p
    printf '\t%s' "$flags"
    for name in id duration "$1/ran/id" "$1/ran/began" until cancel "$1/warning" "$1/end.json" parts joined connector; do said "$name"; done
}
for key; do
    printf '%s' "$key"
    parts=0
    if cd "$root/sessions/$key" 2>/dev/null; then
        records .
        [ -r parts ] && read -r parts <parts
    fi
    printf '\n'
    part=0
    while [ "$part" -lt "$parts" ]; do
        printf '%s' "$key/$part"
        records "part/$part"
        printf '\n'
        part=$((part + 1))
    done
done
