# Describes a kept image archive: its form and its digests, one per line. Arguments: the root directory, and the
# archive's name in `kept`. Stdin: the program that reads it. Exits with 65 if it isn't an image archive; with 69 if
# there is no Python.
find_python || { cat >/dev/null; exit 69; }
exec nice -n 10 "$python" -I - "$1/kept/$2/content"
