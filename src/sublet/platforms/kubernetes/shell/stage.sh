# Lays a session out in its pod, before its program starts. Argument: how many seconds to wait for files that are sent.
# It copies the helper's BusyBox, so that starting the program needs nothing of the program's own image.
set -e
umask 0
tell() { echo "$1" >/dev/termination-log; echo "$1" >&2; exit 75; }
cd /sublet
mkdir -p bin own session/work session/data session/tmp
for busybox in /bin/busybox /usr/bin/busybox /sbin/busybox /busybox ''; do [ ! -x "$busybox" ] || break; done
[ -n "$busybox" ] || tell "the helper image has no BusyBox"
cp "$busybox" bin/busybox
cp /given/start.sh /given/program own/
if [ -e /given/files ]; then
    tar -xzf /given/files -C session || tell "its files could not be unpacked"
else
    left=$(($1 * 5))
    until [ -e own/sent ]; do
        [ "$left" -gt 0 ] || tell "nobody sent its files within $1 s"
        left=$((left - 1))
        sleep 0.2
    done
fi
chmod -R a+rwX session

link() { # links a part of the session's directory below the working directory
    case $2 in */*) mkdir -p "work/${2%/*}" ;; esac
    [ -e "$1" ] || mkdir -p "$1"
    [ ! -d "work/$2" ] || [ -L "work/$2" ] || rmdir "work/$2"
    [ -L "work/$2" ] || ln -sn "/sublet/session/$1" "work/$2"
    [ "$3" = 0 ] || chmod -R a-w "$1"
}
. /given/program
cd session
links
if [ "$nodes" -gt 1 ]; then # nothing starts before all pods are there, and each knows its number
    left=$((together * 5))
    until [ -e /sublet/own/node ]; do
        [ "$left" -gt 0 ] || tell "not all of its $nodes pods were there within $together s"
        left=$((left - 1))
        sleep 0.2
    done
fi
