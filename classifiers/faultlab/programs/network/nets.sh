#!/usr/bin/env bash
# Sets up the job's own network, then runs the program in it.
mode=$1
shift
case $mode in
    unreachable) ip route add unreachable 10.20.0.0/16 ;;
    prohibit) ip route add prohibit 10.20.0.0/16 ;;
    silent)
        ip link add eth0 type dummy
        ip addr add 10.20.0.5/16 dev eth0
        ip link set eth0 up
        ;;
    lonely)
        ip link add eth0 type veth peer name eth1
        ip addr add 10.20.0.5/16 dev eth0
        ip link set eth0 up
        ip link set eth1 up
        ;;
esac
exec python -u "$@"
