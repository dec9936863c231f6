#!/bin/sh
# First process of the guest. Its root is the host's, read-only. It passes packets on between eth0 and eth1; its queues are added below.
set -e
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmpfs /run
for module in net/sched/sch_htb net/sched/sch_tbf net/sched/sch_fq_codel net/sched/sch_cake net/sched/sch_netem \
    net/sched/sch_ingress net/sched/cls_matchall net/sched/cls_u32 net/sched/act_mirred net/sched/act_police; do
    busybox insmod "/usr/lib/uml/modules/$(uname -r)/kernel/$module.ko"
done
busybox insmod "/usr/lib/uml/modules/$(uname -r)/kernel/drivers/net/ifb.ko" numifbs=1
ip link set lo up
# Packets go on as they came: merged ones would pass a queue in one go.
for n in 0 1; do
    ip link set vec$n name eth$n
    ethtool -K eth$n tso off gso off gro off >/dev/null 2>&1
done
ip addr add 10.8.0.2/24 dev eth0
ip addr add 10.9.0.1/24 dev eth1
ip link set eth0 up
ip link set eth1 up
echo 1 >/proc/sys/net/ipv4/ip_forward
