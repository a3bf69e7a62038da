#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first process of a host that is reached over ssh (host_ssh.py), in namespaces of its own:
#   NAME ROOT
# Its mounts end with it, and its end is the end of all the host's processes.
set -e
name=$1 root=$2
hostname "$name"
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs "$root/sys"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs "$root/dev/shm"
mkdir -p "$root/run/sshd"
exec chroot "$root" /usr/sbin/sshd -D -e -o PidFile=none
