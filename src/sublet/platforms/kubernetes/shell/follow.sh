# Prints a program's output, from an offset in each stream on, until it is stopped.
cd /sublet/session
tail -c "+$1" -f stdout &
tail -c "+$2" -f stderr >&2 &
wait
