# Uploads a session's results from this host. Arguments: the directory of the files, and the program that uploads.
# Stdin: the plan, which contains secrets and never appears in a command's arguments. Exits with 69 if there is no
# Python.
find_python || { cat >/dev/null; exit 69; }
exec nice -n 10 "$python" -I -c "$2" "$1"
