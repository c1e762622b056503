#!/usr/bin/env bash
# A machine's first process: it has its own namespaces already, makes its root file system, moves into it and stays.
#   machine.sh NAME SITE-DIRECTORY BASE LAYER HOME SCRATCH CGROUPS [DIRECTORY PLACE]…
set -euo pipefail
name=$1 site=$2 base=$3 layer=$4 home=$5 scratch=$6 cgroups=$7
shift 7
root=$site/machines/$name/root
read -r pid _ </proc/self/stat # still the host's /proc: so this is the number by which the host knows this process
hostname "$name"

. "$(dirname "$(readlink -f "$0")")/root.sh"
lay_root "$root" "$layer:$base" "$site/machines/$name/files" "$site/machines/$name/work" fuse:10:229 nvidia0:1:3 nvidia1:1:3
show_kernel
mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup" # slurmd 22.05 refuses to start with nothing mounted here
if [ -n "$cgroups" ]; then
    for controller in memory freezer cpuset cpuacct devices; do
        mkdir "$root/sys/fs/cgroup/$controller"
        mount --bind "/sys/fs/cgroup/$controller/$cgroups/$name" "$root/sys/fs/cgroup/$controller"
    done
fi
mkdir -p "$root/run/munge" "$root/run/mysqld" "$root/run/mariadbd" "$root/home" "$root/scratch" "$root/var/log/site"
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
enter_root
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
unset TMPDIR XDG_RUNTIME_DIR
echo "$pid" >&9
exec 9>&-
rm -f "/var/log/site/$name.exited"
{
    bash /etc/testbed/start && status=0 || status=$?
    echo "$status" >"/var/log/site/$name.exited"
} </dev/null &
stay
