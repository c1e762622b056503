# The daemons of one machine of the site, by its name; the last one stays in the foreground.
set -eu
start_munge() {
    chown munge:munge /run/munge
    runuser -u munge -- munged
}
case $(hostname) in
    ctl)
        start_munge
        if [ -e /etc/testbed/accounts ]; then bash /etc/testbed/accounts; fi
        exec slurmctld -D
        ;;
    login)
        start_munge
        exec /usr/sbin/sshd -D -e -f /etc/ssh/sshd_site
        ;;
    ap) exec sleep infinity ;;
    *)
        start_munge
        until (: </dev/tcp/ctl/6817) 2>/dev/null; do sleep 0.05; done # slurmd itself would look again after 5 s only
        exec slurmd -D
        ;;
esac
