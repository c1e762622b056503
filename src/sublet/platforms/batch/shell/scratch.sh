# Makes one person's scratch, after place.sh: it must not be a link, and nobody else can enter its parent directory.
mkdir -p -m 700 "$above" || exit 1
[ ! -L "$above" ] || { echo "$above is a link" >&2; exit 77; }
own "$above" || exit
mkdir -p -m 700 "$above/$name" || exit 1
[ ! -L "$above/$name" ] && [ -O "$above/$name" ] || { echo "$above/$name is not a directory of this account" >&2; exit 77; }
printf '%s\n' "$above/$name"
