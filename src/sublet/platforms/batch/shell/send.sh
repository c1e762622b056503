# Has this host send files that a session left. Arguments: the directory that they are below, and the program that does it. Stdin: what
# goes where, which holds secrets and is never a word of a command. Exits with 69 without a Python.
python=
for name in python3 python3.13 python3.12 python3.11 python3.10 python3.9; do
    python=$(command -v "$name") && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null && break
    python=
done
[ -n "$python" ] || { cat >/dev/null; exit 69; }
exec nice -n 10 "$python" -I -c "$2" "$1"
