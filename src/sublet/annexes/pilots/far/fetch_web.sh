#!/bin/sh
# How a job gets what it names by http: and https: addresses: a file transfer plug-in of HTCondor's, in the place of its own, which does
# what this one doesn't. What anybody may read lies in the cache of the system, where it is fetched once for all jobs and sessions of
# its person; see fetch_web.py. `web.values` beside it says where HTCondor's own plug-in and the cache are, and which session needs them.
here=${0%/*}
{ IFS= read -r plain && IFS= read -r kept && IFS= read -r session; } <"$here/web.values" || exit 1
case " $* " in *" -classad "* | *" -upload "*) exec "$plain" "$@" ;; esac
[ "$1" = -infile ] && [ -n "$session" ] && grep -qi 'url *= *"https\{0,1\}:' "$2" || exec "$plain" "$@"
python=$(command -v python3) && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null &&
    exec "$python" -I "$here/fetch_web.py" "$plain" "$kept" "$session" "$@"
exec "$plain" "$@"
