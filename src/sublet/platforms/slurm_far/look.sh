# What the files of some sessions say, one line each. Arguments: the root directory, then keys. Only the shell's own words
# are used, so a thousand sessions cost no thousand processes.

root=$1
shift
said() {
    line=
    [ -r "$1" ] && IFS= read -r line <"$1"
    printf '\t%s' "$line"
}
for key; do
    printf '%s' "$key"
    if cd "$root/sessions/$key" 2>/dev/null; then
        flags=c
        [ -d ran ] && flags=${flags}r
        [ -e ran/time ] && flags=${flags}t
        [ -e ran/term ] && flags=${flags}k
        [ -e paused ] && flags=${flags}p
        printf '\t%s' "$flags"
        for name in id duration ran/id ran/began until cancel warning end.json; do said "$name"; done
    fi
    printf '\n'
done
