#!/bin/sh
# Runs a lease that a site has taken, reports how it ended, and leaves nothing behind. Argument: its directory, with
#
#   request            its id and size;  invitation: where to report;  .sublet/pilot/: its scripts
umask 077
dir=$1
cd "$dir" || exit 85
. ./request
export SUBLET_CORES="$cores" SUBLET_MEMORY="$((memory * 1048576))"
sh .sublet/pilot/start.sh >stdout 2>stderr &
child=$!
trap 'kill -s TERM "$child" 2>/dev/null' TERM INT HUP
while :; do
    wait "$child"
    code=$?
    kill -0 "$child" 2>/dev/null || break
done
. ./invitation
. .sublet/pilot/ask.sh
{
    printf 'token=%s\nrequest=%s\ncode=%s\n' "$token" "$request" "$code"
    sed -n 's/^pilot: /words=&/p' stderr | tail -n 50
} >said
ask "/sites/$site/ended" said answer
cd / && rm -rf "$dir"
exit "$code"
