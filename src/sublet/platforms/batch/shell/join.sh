# Joins the results of a session's parts when all of them have ended. Argument: the session's directory. It answers with
# the exit code of the program that joins (`-`: there is none) and that program's last line, which is then kept in
# `joined`. It can be repeated at any time: files are put in place only when complete.

cd "$1" || exit 1
[ -r joined ] && exec cat joined
umask 077
read -r parts <parts || exit 1

load() { # loads modules, where the system has them
    if ! command -v module >/dev/null 2>&1; then
        for file in /etc/profile.d/modules.sh /etc/profile.d/lmod.sh /usr/share/lmod/lmod/init/sh /usr/share/modules/init/sh; do
            [ -r "$file" ] && . "$file" && break
        done
    fi
    for name; do module load "$name" >&2; done
}

for stream in stdout stderr; do
    part=0
    while [ "$part" -lt "$parts" ]; do
        [ ! -r "part/$part/$stream" ] || cat "part/$part/$stream" || exit 1
        part=$((part + 1))
    done >"$stream.$$" || exit 1
done
. ./program
code=- words=
if [ "$joins" = 1 ]; then
    (modules && cd work && join) </dev/null >"said.$$" 2>>"stderr.$$"
    code=$?
    words=$(tail -n 1 "said.$$" | tr '\t' ' ' | head -c 1500)
    cat "said.$$" >>"stdout.$$" || exit 1
    rm -f "said.$$"
fi
mv "stdout.$$" stdout && mv "stderr.$$" stderr || exit 1
printf '%s %s\n' "$code" "$words" >"joined.$$" && mv "joined.$$" joined && cat joined
