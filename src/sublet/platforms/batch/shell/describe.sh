# Says what an archive of an image is that is kept here: its form and its digests, a line each. Arguments: the root directory, and the
# archive's name in `kept`. Stdin: the program that reads it. Exits with 65 if it is no archive of an image; with 69 without a Python.
find_python || { cat >/dev/null; exit 69; }
exec nice -n 10 "$python" -I - "$1/kept/$2/content"
