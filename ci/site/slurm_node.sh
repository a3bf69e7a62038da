#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first process of a host of the test cluster (host_slurm.py), in namespaces of its own.
#   NAME  LOCAL: its private directory, where munge's socket lies  KEY of munge  HOSTS: /etc/hosts
#   DAEMON WORDS...
# SHARED holds directories that stay visible although what is above them becomes private.
set -e
name=$1 local=$2 key=$3 hosts=$4
shift 4
hostname "$name"
mount --bind "$hosts" /etc/hosts
mount -t tmpfs -o mode=0755 tmpfs "$local"

number=0
for shared in ${SHARED-}; do
  mkdir -p "$local/shared/$number"
  mount --bind "$shared" "$local/shared/$number"
  number=$((number + 1))
done
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs /dev/shm
number=0
for shared in ${SHARED-}; do
  mkdir -p "$shared"
  mount --move "$local/shared/$number" "$shared"
  number=$((number + 1))
done

install -d -o munge -g munge -m 0755 "$local/munge"
install -o munge -g munge -m 0400 "$key" "$local/munge/key"
setpriv --reuid=munge --regid=munge --clear-groups /usr/sbin/munged --foreground --force \
  --key-file="$local/munge/key" --socket="$local/munge/socket" --num-threads=1 \
  --pid-file="$local/munge/pid" --seed-file="$local/munge/seed" --log-file="$local/munge/log" &
until [ -S "$local/munge/socket" ]; do
  kill -0 $! || exit 1
  sleep 0.05
done
# Not exec: the shell reaps the processes that their parents leave behind.
"$@" &
wait $!
