# Writes what it reads into a file of an entry of the cache, from a byte on. Arguments: the root directory, the entry's name in
# `kept`, the byte, and the file's path in the entry. Writing the same bytes once more does no harm, so a writer that was cut off and
# has not noticed is none either.
umask 077
cd "$1/kept/$2" || exit 73
: >claim/beat || exit 73
case $4 in */*) mkdir -p "${4%/*}" || exit 73 ;; esac
exec dd of="$4" bs=1048576 seek="$3" oflag=seek_bytes conv=notrunc iflag=fullblock status=none
