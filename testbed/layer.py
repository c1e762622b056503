"""The files of a site, laid over its base: users, names, keys, sshd and PAM."""

import os
import shutil
import subprocess
from pathlib import Path

from testbed import checkout
from testbed.people import AP_USERS, CODE_SECRET, PASSWORD, PASSWORD_HASH, USERS
from testbed.plan import Plan
from testbed.slurm import write_slurm

HERE = Path(__file__).resolve().parent

PAM = """\
# keyholder: sshd has checked the key already, so the code only; everybody else: the password, then the code or a push
auth [success=3 default=ignore] pam_succeed_if.so quiet user = keyholder
auth requisite pam_unix.so nodelay
auth [success=1 default=ignore] pam_succeed_if.so quiet user != pusher
auth [success=1 ignore=ignore default=die] pam_exec.so quiet stdout /bin/sh /etc/testbed/push
auth required pam_google_authenticator.so secret=/etc/otp/${USER} user=root
account required pam_unix.so
session required pam_env.so
session required pam_unix.so
"""

PUSH = """\
echo 'A request was sent to your phone.'
for i in $(seq 600); do
    [ -e /tmp/push ] && exec grep -q yes /tmp/push
    sleep 0.1
done
exit 1
"""

# The base's own starts programs to find this out, for every command that somebody types.
PROFILE = "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games\nexport PATH\n"

BASHRC = {
    "plain": "",
    "slow": "sleep 2\n",
    "noisy": "echo 'Welcome! The site is down for maintenance on Tuesday.'\necho 'module: command not found' >&2\n"
    "printf 'quota: 97%% used '\n",
}


def write_layers(plan: Plan) -> None:
    """Write all files that make the base a site, and those that make it `ap`."""
    layer = plan.root / "layer"
    write_users(plan, layer, {user.name: user.uid for user in USERS})
    write_hosts(plan, layer)
    write_login(plan, layer)
    write_slurm(plan, layer)
    link_pmix(plan, layer)
    pack_quickly(plan, layer)
    put(layer / "etc/testbed/start", (HERE / "start.sh").read_text())
    if plan.accounts:
        put(layer / "etc/testbed/accounts", (HERE / "accounts.sh").read_text())
    write_homes(plan)
    if plan.ap:
        write_ap(plan, plan.root / "ap-layer")


def put(path: Path, text: str, mode: int = 0o644) -> Path:
    """Write a file and the directories that lead to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def base_text(plan: Plan, path: str) -> str:
    """The text of a file of the base."""
    return (Path(plan.base) / path).read_text()


def write_users(plan: Plan, layer: Path, users: dict[str, int]) -> None:
    """Add people to the base's own user tables."""

    def added(path: str, line: str) -> str:
        kept = [old for old in base_text(plan, path).splitlines() if old.partition(":")[0] not in users]
        return "\n".join([*kept, *(line.format(name=name, uid=uid) for name, uid in users.items())]) + "\n"

    put(layer / "etc/passwd", added("etc/passwd", "{name}:x:{uid}:{uid}::/home/{name}:/bin/bash"))
    put(layer / "etc/group", added("etc/group", "{name}:x:{uid}:"))
    put(layer / "etc/shadow", added("etc/shadow", "{name}:" + PASSWORD_HASH + ":19000:0:99999:7:::"), 0o640)


def write_hosts(plan: Plan, layer: Path) -> None:
    """Names by /etc/hosts alone: a site asks no name server. A login shell begins at once."""
    put(layer / "etc/profile", PROFILE)
    lines = ["127.0.0.1 localhost", *(f"{plan.address(machine)} {machine}" for machine in plan.machines)]
    put(layer / "etc/hosts", "\n".join(lines) + "\n")
    kept = [line for line in base_text(plan, "etc/nsswitch.conf").splitlines() if not line.startswith("hosts:")]
    put(layer / "etc/nsswitch.conf", "\n".join([*kept, "hosts: files"]) + "\n")
    put(layer / "etc/resolv.conf", "")
    if not os.path.lexists(Path(plan.base) / "etc/localtime"):
        (layer / "etc/localtime").symlink_to("/usr/share/zoneinfo/Etc/UTC")  # Apptainer binds it and fails without


def link_pmix(plan: Plan, layer: Path) -> None:
    """PMIx under the name by which Debian's Slurm looks for it, which only the development package has."""
    folder = Path("usr/lib/x86_64-linux-gnu/pmix2/lib")
    if (Path(plan.base) / folder / "libpmix.so.2").exists() and not (Path(plan.base) / folder / "libpmix.so").exists():
        (layer / folder).mkdir(parents=True)
        (layer / folder / "libpmix.so").symlink_to("libpmix.so.2")


def pack_quickly(plan: Plan, layer: Path) -> None:
    """Images that Apptainer makes are not compressed: that is most of its work, and nobody keeps them."""
    if (Path(plan.base) / "usr/bin/mksquashfs").exists():
        put(layer / "usr/local/bin/mksquashfs", '#!/bin/sh\nexec /usr/bin/mksquashfs "$@" -noI -noD -noF -noX\n', 0o755)


def write_login(plan: Plan, layer: Path) -> None:
    """The login host: its key, the people's keys, their second factor, and what sshd asks of whom."""
    new_key(plan.root / "id", "testbed")
    new_key(plan.root / "host_key", "login")
    ssh = layer / "etc/ssh"
    put(ssh / "host_key", (plan.root / "host_key").read_text(), 0o600)
    for user in USERS:
        if "key" in user.factors:
            put(ssh / "keys" / user.name, (plan.root / "id.pub").read_text())
        if "code" in user.factors:
            once = '" DISALLOW_REUSE\n' if plan.one_time_codes else ""
            put(layer / "etc/otp" / user.name, f'{CODE_SECRET}\n" TOTP_AUTH\n" WINDOW_SIZE 3\n{once}', 0o400)
    put(layer / "etc/pam.d/sshd", PAM)
    put(layer / "etc/testbed/push", PUSH)
    listen = "ListenAddress 0.0.0.0"
    if plan.latency:  # the delay listens on the outer addresses, and talks to sshd on the inner one
        listen = f"ListenAddress {plan.address('login')}\nListenAddress 127.0.0.1"
    put(ssh / "sshd_site", "\n".join([*plan.sshd, listen, SSHD]))
    host_key = " ".join((plan.root / "host_key.pub").read_text().split()[:2])
    put(plan.root / "known_hosts", f"{plan.outer}.2,{plan.wide}.1,{plan.name} {host_key}\n")
    put(plan.root / "password", PASSWORD + "\n", 0o600)
    put(plan.root / "ssh_config", ssh_config(plan.name, f"{plan.outer}.2", plan.root))


SSHD = """\
HostKey /etc/ssh/host_key
UsePAM yes
PasswordAuthentication no
KbdInteractiveAuthentication yes
PermitRootLogin no
AuthorizedKeysFile /etc/ssh/keys/%u
AuthenticationMethods keyboard-interactive:pam
UseDNS no
PrintMotd no
PidFile none
Subsystem sftp internal-sftp
Match User keyholder
  AuthenticationMethods publickey,keyboard-interactive:pam
Match User service
  AuthenticationMethods publickey
"""


def new_key(path: Path, comment: str) -> None:
    """Make a key pair without a passphrase."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path], check=True)


def ssh_config(host: str, address: str, keys: Path | str) -> str:
    """An ssh configuration that knows the site by its name."""
    return (
        f"Host {host}\n  HostName {address}\n  HostKeyAlias {host}\n  User researcher\n  IdentityFile {keys}/id\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {keys}/known_hosts\n"
    )


def write_homes(plan: Plan) -> None:
    """A home on the shared file system for everybody."""
    for user in USERS:
        home = plan.root / "home" / user.name
        put(home / ".bashrc", BASHRC[plan.bashrc])
        own(home, user.uid, 0o750)


def own(tree: Path, uid: int, mode: int) -> None:
    """Give a directory and all in it to somebody."""
    for path in [tree, *tree.rglob("*")]:
        os.chown(path, uid, uid, follow_symlinks=False)
    tree.chmod(mode)


def write_ap(plan: Plan, layer: Path) -> None:
    """`ap` is beside the site: its own users and homes, one researcher's keys; the site's files if it mounts them."""
    users = {**AP_USERS, "researcher": USERS[0].uid} if plan.ap_mounts else AP_USERS  # a mount shows the site's owners
    write_users(plan, layer, users)
    write_hosts(plan, layer)
    put(layer / "etc/hosts", f"127.0.0.1 localhost\n{plan.address('ap')} ap\n{plan.wide}.1 login {plan.name}\n")
    put(layer / "etc/testbed/start", (HERE / "start.sh").read_text())
    checkout.install(plan.base)
    for path, text in checkout.files(plan.base).items():
        put(layer / path, text, 0o755)
    home = plan.root / "ap-home/researcher"
    put(home / ".ssh/config", ssh_config(plan.name, f"{plan.wide}.1", "~/.ssh"), 0o600)
    for name in ("id", "id.pub", "known_hosts"):
        shutil.copy2(plan.root / name, home / ".ssh" / name)
    (home / ".ssh").chmod(0o700)
    for name, uid in users.items():
        (plan.root / "ap-home" / name).mkdir(exist_ok=True)
        own(plan.root / "ap-home" / name, uid, 0o750)
