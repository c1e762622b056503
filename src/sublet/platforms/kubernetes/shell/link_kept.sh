# For pairs DIGEST PATH, prints the digests that the claim lacks, and links the others at their paths in the session.
# The first argument is the number of days after which an unused file is removed.
set -e
umask 0
days=$1
shift
while [ "$#" -gt 0 ]; do
    if [ -f "/kept/$1" ]; then
        touch "/kept/$1"
        path=/sublet/session/$2
        mkdir -p "${path%/*}"
        ln -sf "/kept/$1" "$path"
    else
        echo "$1"
    fi
    shift 2
done
find /kept -maxdepth 1 -type f -mtime "+$days" -exec rm -f {} +
