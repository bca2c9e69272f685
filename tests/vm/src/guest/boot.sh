#!/bin/busybox sh
# shellcheck shell=dash
# The first program of the machine: makes a disk its root. Neither pivot_root nor id-mapped mounts work on the file system
# that the kernel unpacked.
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox echo "@belljar up"
while read -r module; do
    /bin/busybox insmod "/modules/$module"
done </modules/order
/bin/busybox mke2fs -q -I 256 /dev/vda >/dev/null 2>&1
/bin/busybox mount -t ext4 /dev/vda /disk
/bin/busybox cp -a /tree/. /disk/
/bin/busybox umount /dev
exec /bin/busybox switch_root /disk /run.sh
