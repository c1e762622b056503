# A desktop: an X server that speaks VNC on the Unix socket $SUBLET_SOCKET, and a desktop environment on it. It runs in
# the session's working directory, on a machine or in an image, and ends when the person logs out.
say() { echo "sublet: $*" >&2; }
there() { command -v "$1" >/dev/null 2>&1; }
first() { for name; do there "$name" && { echo "$name"; return; }; done; return 1; }

server=$(first ${SUBLET_PROGRAM:+"$SUBLET_PROGRAM"} Xvnc Xtigervnc) || {
    say "there is no Xvnc here: install tigervnc-standalone-server (Debian) or tigervnc-server"
    exit 127
}
for page in "${NOVNC:-}" /usr/share/novnc /usr/share/noVNC /usr/share/webapps/novnc /usr/local/share/novnc /opt/novnc /opt/noVNC ''; do
    [ -e "$page/vnc.html" ] && break
done
[ -n "$page" ] || { say "there is no noVNC here: install novnc, or say where it is in the variable NOVNC"; exit 127; }
umask 077
own=$PWD/.sublet
mkdir -p "$own/novnc" && cp -RL "$page/." "$own/novnc/" || exit 70 # served to visitors from there, even if it is in an image
rm -f "$SUBLET_SOCKET" "$own/display"

XAUTHORITY=$own/Xauthority
export XAUTHORITY
"$server" -displayfd 3 -auth "$XAUTHORITY" -nolisten tcp -rfbport -1 -rfbunixpath "$SUBLET_SOCKET" -rfbunixmode 384 \
    -SecurityTypes None -AlwaysShared -geometry "${SUBLET_GEOMETRY:-1280x800}" -depth 24 3>"$own/display" &
xserver=$!
trap 'kill "$xserver" ${desktop:+"$desktop"} 2>/dev/null; exit 143' TERM INT HUP
until [ -s "$own/display" ]; do
    kill -0 "$xserver" 2>/dev/null || { say "the X server ended before it was ready"; exit 70; }
    sleep 0.1
done
DISPLAY=:$(cat "$own/display")
export DISPLAY
umask 022

terminal=$(first x-terminal-emulator xfce4-terminal xterm) || terminal=
chosen=$(first ${SUBLET_DESKTOP:-} startxfce4 startlxqt mate-session icewm-session openbox fluxbox twm $terminal) || {
    say "there is no desktop here, no window manager and no terminal: install xfce4, or openbox and xterm"
    kill "$xserver"
    exit 127
}
bus=$(first dbus-run-session) || bus=
case $chosen in openbox | fluxbox | twm) [ -n "$terminal" ] && "$terminal" & ;; esac
case $chosen in start* | *-session) ${bus:+"$bus" --} "$chosen" & ;; *) "$chosen" & ;; esac
desktop=$!
wait "$desktop"
kill "$xserver" 2>/dev/null
exit 0
