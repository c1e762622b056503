# Has this host send files that a session left. Arguments: the directory that they are below, and the program that does it. Stdin: what
# goes where, which holds secrets and is never a word of a command. Exits with 69 without a Python.
find_python || { cat >/dev/null; exit 69; }
exec nice -n 10 "$python" -I -c "$2" "$1"
