# Writes stdin into a file of an entry of the cache, from an offset. Arguments: the root directory, the entry's name in
# `kept`, the offset, and the file's path in the entry. Writing the same bytes twice does no harm, so neither does an
# interrupted writer that hasn't noticed it yet.
umask 077
cd "$1/kept/$2" || exit 73
: >claim/beat || exit 73
case $4 in */*) mkdir -p "${4%/*}" || exit 73 ;; esac
exec dd of="$4" bs=1048576 seek="$3" oflag=seek_bytes conv=notrunc iflag=fullblock status=none
