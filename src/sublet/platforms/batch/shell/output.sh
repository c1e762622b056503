# Prints the output of a session's parts, in their order: that of a part that still runs comes last, and nothing of the
# parts behind it, so that offsets stay valid. Arguments: the session's directory, the stream, the offset and the limit.

cd "$1" && read -r parts <parts || exit 1
stream=$2 offset=$3 limit=$4 part=0
while [ "$part" -lt "$parts" ] && [ "$limit" -gt 0 ]; do
    size=0 over=
    [ -e "part/$part/end.json" ] && over=1
    [ -r "part/$part/$stream" ] && size=$(stat -c %s "part/$part/$stream")
    if [ "$offset" -lt "$size" ]; then
        some=$((size - offset))
        [ "$some" -le "$limit" ] || some=$limit
        tail -c "+$((offset + 1))" "part/$part/$stream" | head -c "$some"
        limit=$((limit - some)) offset=$((offset + some))
    fi
    [ -n "$over" ] || exit 0
    offset=$((offset - size))
    part=$((part + 1))
done
