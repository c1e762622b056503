#!/bin/sh
# Runs the stages that are its arguments, one after another, in the folder of the app's code; POSIX sh only, as in images.
# The first failure ends it, with that stage's exit code; the stage's name is left in the home directory.

here=${0%/*}
. "$here/environment"
HOME=$SUBLET_HOME_FOLDER
export HOME
cd "$executable_folder" || exit 70
shell=sh
command -v bash >/dev/null 2>&1 && shell=bash

termed= child=
trap 'termed=1; [ -n "$child" ] && kill -s TERM "$child" 2>/dev/null' TERM
for stage; do
    "$shell" "$here/$stage" &
    child=$!
    wait "$child"
    code=$?
    [ -n "$termed" ] && { wait "$child"; exit 143; }
    if [ "$code" -ne 0 ]; then
        printf '%s\n' "$stage" >"$HOME/.stage"
        printf 'sublet: the stage %s failed with exit code %s\n' "$stage" "$code" >&2
        exit "$code"
    fi
done
