#!/usr/bin/env bash
# The cluster's one machine: it has its own namespaces already, makes its root file system, moves into it and starts everything.
#   machine.sh ROOT BOX PROGRAMS IMAGES LOG CGROUP ADDRESS
set -euo pipefail
root=$1 box=$2 programs=$3 images=$4 log=$5 cgroup=$6 address=$7
here=$(dirname "$(readlink -f "$0")")
hostname kubernetes

mount -t tmpfs -o size=4g,mode=755 tmpfs "$root"
mkdir "$root/files" "$root/work" "$root/root"
files=$root
root=$root/root
. "$here/../root.sh"
lay_root "$root" "$box" "$files/files" "$files/work" kmsg:1:11
show_kernel rw
mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
for controller in memory freezer cpuset cpuacct cpu devices blkio pids systemd; do
    mkdir "$root/sys/fs/cgroup/$controller"
    mount --bind "/sys/fs/cgroup/$controller/$cgroup" "$root/sys/fs/cgroup/$controller"
done
mkdir -p "$root/kubernetes/programs" "$root/kubernetes/images" "$root/kubernetes/log"
mount --bind "$programs" "$root/kubernetes/programs"
mount --bind "$images" "$root/kubernetes/images"
mount --bind "$log" "$root/kubernetes/log"
cp "$here/start.sh" "$root/kubernetes/start.sh"
printf '127.0.0.1 localhost\n%s kubernetes\n' "$address" >"$root/etc/hosts"

enter_root
export PATH=/kubernetes/programs:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
unset TMPDIR XDG_RUNTIME_DIR
exec bash /kubernetes/start.sh "$address"
