#!/usr/bin/env bash
# A machine's first process: it has its own namespaces already, makes its root file system, moves into it and stays.
#   machine.sh NAME SITE-DIRECTORY BASE LAYER HOME SCRATCH CGROUPS [DIRECTORY PLACE]…
set -euo pipefail
name=$1 site=$2 base=$3 layer=$4 home=$5 scratch=$6 cgroups=$7
shift 7
root=$site/machines/$name/root
read -r pid _ </proc/self/stat # still the host's /proc: so this is the number by which the host knows this process
hostname "$name"

mount -t overlay overlay -o "lowerdir=$layer:$base,upperdir=$site/machines/$name/files,workdir=$site/machines/$name/work" "$root"
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
fuse 10 229
nvidia0 1 3
nvidia1 1 3
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
mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup" # slurmd 22.05 refuses to start with nothing mounted here
if [ -n "$cgroups" ]; then
    for controller in memory freezer cpuset cpuacct devices; do
        mkdir "$root/sys/fs/cgroup/$controller"
        mount --bind "/sys/fs/cgroup/$controller/$cgroups/$name" "$root/sys/fs/cgroup/$controller"
    done
fi
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mkdir -p "$root/run/sshd" "$root/run/lock" "$root/run/munge" "$root/run/mysqld" "$root/run/mariadbd" "$root/home" "$root/scratch" "$root/var/log/site"
mount --bind "$home" "$root/home"
mount --bind "$scratch" "$root/scratch"
mount --bind "$site/log" "$root/var/log/site"
while [ $# -gt 0 ]; do
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
    [ -k "$1" ] || [ "$1" = "$site/home" ] || mount -o remount,bind,ro "$root$2" # what is not for everybody to write is for nobody
    shift 2
done

exec 9>"$site/machines/$name/pid" # opened here, written when the machine is ready to be entered
cd "$root"
mkdir -p .old
pivot_root . .old # not chroot: the kernel gives a chrooted process no user namespace, and Apptainer needs one
cd /
umount -l /.old
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
unset TMPDIR XDG_RUNTIME_DIR
echo "$pid" >&9
exec 9>&-
rm -f "/var/log/site/$name.exited"
{
    bash /etc/testbed/start && status=0 || status=$?
    echo "$status" >"/var/log/site/$name.exited"
} </dev/null &
while :; do
    sleep 3600 &
    wait $! || :
done
