#!/bin/busybox sh
# shellcheck shell=dash
# The second program: mounts the usual file systems, prints the kernel and its control groups, runs the list of tasks,
# and turns the machine off. Lines for the reader of the serial line begin with @belljar.
export PATH=/usr/sbin:/usr/bin HOME=/root NO_COLOR=1
/bin/busybox mkdir -p /usr/bin /usr/sbin
/bin/busybox --install -s /usr/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
chmod 1777 /tmp
chown 1000:1000 /home/user
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs run /run
mount -t cgroup2 -o nsdelegate cgroup2 /sys/fs/cgroup
ip link set lo up 2>/dev/null || ifconfig lo up
hostname guest
echo "+cpu +memory +pids" >/sys/fs/cgroup/cgroup.subtree_control
echo "@belljar kernel $(uname -r)"
echo "@belljar controllers $(cat /sys/fs/cgroup/cgroup.subtree_control)"
mkdir -p /mnt/old
mount -t cgroup -o memory old /mnt/old 2>/dev/null
echo "@belljar version-1 $(grep -c ' cgroup ' /proc/mounts)"
while read -r user name seconds command; do
    echo "@belljar begin $user $name"
    if [ "$user" = root ]; then
        timeout -s KILL "$seconds" sh -c "$command" </dev/null 2>&1
    else
        timeout -s KILL "$seconds" su -p -s /bin/sh "$user" -c "$command" </dev/null 2>&1
    fi
    echo "@belljar end $user $name $?"
    echo "@belljar clock $(cut -d . -f 1 /proc/uptime)"
done </list
echo "@belljar done"
poweroff -f
