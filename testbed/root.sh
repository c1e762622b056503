# What the first process of every machine does with its root file system: sourced by those that are one.

lay_root() { # ROOT LOWER UPPER WORK, then more devices as NAME:MAJOR:MINOR: an overlay, with all that programs expect of a machine
    root=$1
    mount -t overlay overlay -o "lowerdir=$2,upperdir=$3,workdir=$4" "$root"
    shift 4
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    for device in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0 "$@"; do
        numbers=${device#*:}
        mknod -m 666 "$root/dev/${device%%:*}" c "${numbers%:*}" "${numbers#*:}"
    done
    mkdir "$root/dev/pts" "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    for number in 0:stdin 1:stdout 2:stderr; do ln -s "fd/${number%:*}" "$root/dev/${number#*:}"; done
    mount -t proc proc "$root/proc"
    mount -t tmpfs -o mode=755 tmpfs "$root/run"
    mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
    mkdir -p "$root/run/sshd" "$root/run/lock"
}

show_kernel() { mount -t sysfs -o "${1:-ro}" sysfs "$root/sys"; }

enter_root() { # not chroot: the kernel gives a chrooted process no user namespace, and Apptainer needs one
    cd "$root"
    mkdir -p .old
    pivot_root . .old
    cd /
    umount -l /.old
}

stay() {
    while :; do
        sleep 3600 &
        wait $! || :
    done
}
