# A machine's first process: it has its own namespaces already, makes its root file system over a box, moves into it and stays.
#   machine.sh NAME DIRECTORY BOX HOSTS [DIRECTORY PLACE]…
set -eu
name=$1 place=$2 box=$3 hosts=$4
shift 4
read -r pid _ </proc/self/stat # still the host's /proc: so this is the number by which the host knows this process
hostname "$name"
. "$(dirname "$(readlink -f "$0")")/../../testbed/root.sh"
mount -t tmpfs -o size=2G tmpfs "$place/files"
mkdir "$place/files/upper" "$place/files/work" "$place/files/root"
lay_root "$place/files/root" "$box" "$place/files/upper" "$place/files/work"
show_kernel
printf '127.0.0.1 localhost\n%b' "$hosts" >"$root/etc/hosts"
while [ $# -gt 0 ]; do
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
    [ -k "$1" ] || mount -o remount,bind,ro "$root$2" # what is not for everybody to write is for nobody
    shift 2
done
exec 9>"$place/pid" # opened here, written when the machine is ready to be entered
enter_root
echo "$pid" >&9
exec 9>&-
stay
