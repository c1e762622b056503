# Unpacks a tar archive of many small files into an entry of the cache. Arguments: the root directory, the entry's name
# in `kept`.
umask 077
cd "$1/kept/$2" && mkdir -p part || exit 73
: >claim/beat || exit 73
exec tar -x -f - -C part --no-same-owner --no-same-permissions
