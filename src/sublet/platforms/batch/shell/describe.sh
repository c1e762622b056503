# Says what an archive of an image is that is kept here: its form and its digests, a line each. Arguments: the root directory, and the
# archive's name in `kept`. Stdin: the program that reads it. Exits with 65 if it is no archive of an image; with 69 without a Python.
python=
for name in python3 python3.13 python3.12 python3.11 python3.10 python3.9; do
    python=$(command -v "$name") && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null && break
    python=
done
[ -n "$python" ] || { cat >/dev/null; exit 69; }
exec nice -n 10 "$python" -I - "$1/kept/$2/content"
