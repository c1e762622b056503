# A machine's first process: it has its own namespaces already, makes its root file system over a box, moves into it and stays.
#   machine.sh NAME DIRECTORY BOX HOSTS
set -eu
name=$1 place=$2 box=$3 hosts=$4
read -r pid _ </proc/self/stat # still the host's /proc: so this is the number by which the host knows this process
hostname "$name"
mount -t tmpfs -o size=2G tmpfs "$place/files"
mkdir "$place/files/upper" "$place/files/work" "$place/files/root"
root=$place/files/root
mount -t overlay overlay -o "lowerdir=$box,upperdir=$place/files/upper,workdir=$place/files/work" "$root"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
while read -r device major minor; do
    mknod -m 666 "$root/dev/$device" c "$major" "$minor"
done <<'DEVICES'
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
DEVICES
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ln -s fd/0 "$root/dev/stdin"
ln -s fd/1 "$root/dev/stdout"
ln -s fd/2 "$root/dev/stderr"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mkdir -p "$root/run/sshd" "$root/run/lock"
printf '127.0.0.1 localhost\n%b' "$hosts" >"$root/etc/hosts"
exec 9>"$place/pid" # opened here, written when the machine is ready to be entered
cd "$root"
mkdir -p .old
pivot_root . .old
cd /
umount -l /.old
echo "$pid" >&9
exec 9>&-
while :; do
    sleep 3600 &
    wait $! || :
done
