# Prints what a program prints, from a byte of each stream on, until it is stopped.
cd /sublet/session
tail -c "+$1" -f stdout &
tail -c "+$2" -f stderr >&2 &
wait
