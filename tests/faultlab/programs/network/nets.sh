#!/usr/bin/env bash
# Sets up the job's own network, then runs the program in it.
mode=$1
shift
case $mode in
    unreachable) ip route add unreachable 10.20.0.0/16 ;;
    prohibit) ip route add prohibit 10.20.0.0/16 ;;
    silent)
        ip link add eth0 type veth peer name eth1
        ip addr add 10.20.0.5/16 dev eth0
        ip link set eth0 up
        ip link set eth1 up
        for host in 10.20.1.9 10.20.7.1; do
            ip neigh add $host lladdr 02:00:00:00:00:07 dev eth0 nud permanent
        done
        ;;
    lonely)
        ip link add eth0 type veth peer name eth1
        ip addr add 10.20.0.5/16 dev eth0
        ip link set eth0 up
        ip link set eth1 up
        ;;
esac
exec python -u "$@"
