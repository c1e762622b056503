#!/bin/sh
# The first process of a guest: it does with user data what cloud-init does, which is to run it once for each instance.
# That it has been run is noted on the instance's own disk, so that a guest that is started again does not run it again.
export PATH=/usr/local/bin:/usr/bin:/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t tmpfs tmpfs /dev/shm
while read -r module; do insmod "/modules/$module"; done </modules/order
mount -t tmpfs -o mode=755 tmpfs /run
chmod 1777 /tmp /var/tmp
hostname -F /etc/hostname

mkdir -p /run/config
for try in 1 2 3 4 5 6 7 8 9 10; do
    for device in /dev/sr0 /dev/vdb /dev/sda; do
        [ -b "$device" ] && mount -t iso9660 -o ro "$device" /run/config && break 2
    done
    sleep 0.2
done
ip link set lo up
python3 - <<'ADDRESSES'
import json, subprocess
try:
    with open("/run/config/openstack/latest/network_data.json") as file:
        told = json.load(file)
except OSError:
    told = {"networks": []}
for number, network in enumerate(told["networks"]):
    address = network["ip_address"] + ("" if "/" in network["ip_address"] else "/" + network["netmask"])
    subprocess.run(["ip", "addr", "add", address, "dev", f"eth{number}"], check=False)
    subprocess.run(["ip", "link", "set", f"eth{number}", "up"], check=False)
    for route in network.get("routes") or ():
        if route["network"] == "0.0.0.0":
            subprocess.run(["ip", "route", "add", "default", "via", route["gateway"]], check=False)
ADDRESSES
data=/run/config/openstack/latest/user_data
if [ "$(head -c 6 /dev/vda)" = booted ]; then
    echo "cloud-init: this instance has been started before"
elif [ -s "$data" ]; then
    printf booted | dd of=/dev/vda conv=notrunc 2>/dev/null
    sync
    cp "$data" /run/user_data
    umount /run/config
    chmod 700 /run/user_data
    /run/user_data
    echo "cloud-init: user data ended with $?"
else
    echo "cloud-init: there is no user data"
fi
while :; do sleep 3600; done
