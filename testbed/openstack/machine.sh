#!/usr/bin/env bash
# The cloud's one machine: it has its own namespaces already, makes its root file system, moves into it and starts everything.
#   machine.sh ROOT BOX GUEST LOG ADDRESS
set -euo pipefail
root=$1 box=$2 guest=$3 log=$4 address=$5
here=$(dirname "$(readlink -f "$0")")
hostname cloud

mount -t tmpfs -o size=6g,mode=755 tmpfs "$root"
mkdir "$root/files" "$root/work" "$root/root"
files=$root
root=$root/root
mount -t overlay overlay -o "lowerdir=$box,upperdir=$files/files,workdir=$files/work" "$root"
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
# Guests are emulated where the processor has no virtualization of its own: a KVM without it (PVM) is not trusted with this machine.
if grep -q -w -E 'vmx|svm' /proc/cpuinfo && (: <>/dev/kvm) 2>/dev/null; then mknod -m 666 "$root/dev/kvm" c 10 232; fi
mkdir "$root/dev/pts" "$root/dev/shm" "$root/dev/net"
mknod -m 666 "$root/dev/net/tun" c 10 200
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mkdir -p "$root/run/lock" "$root/cloud/guest" "$root/cloud/log" "$root/cloud/programs"
mount --bind "$guest" "$root/cloud/guest"
mount --bind "$log" "$root/cloud/log"
mount --bind "$here/inside" "$root/cloud/programs"
printf '127.0.0.1 localhost\n%s cloud\n' "$address" >"$root/etc/hosts"

cd "$root"
mkdir -p .old
pivot_root . .old
cd /
umount -l /.old
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
unset TMPDIR XDG_RUNTIME_DIR PYTHONPATH
exec bash /cloud/programs/start.sh "$address"
