#!/usr/bin/env bash
# Makes sure that a router of User-Mode Linux can be started here, installing it from Debian where that may be done. If not,
# prints the reason in one sentence, and fails.
set -uo pipefail

needed=()
command -v linux.uml >/dev/null || needed+=(user-mode-linux)
command -v busybox >/dev/null || needed+=(busybox-static)
command -v ethtool >/dev/null || needed+=(ethtool)
command -v iperf3 >/dev/null || needed+=(iperf3)

fail() {
    echo "$*"
    exit 1
}

((EUID == 0)) || fail "only root may give a guest its network devices."
[[ -w /dev/net/tun ]] || fail "there is no /dev/net/tun here, which a guest's network devices need."
((${#needed[@]} == 0)) && exit 0
command -v apt-get >/dev/null || fail "there is no ${needed[*]} here, and no apt-get to install it with."
{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${needed[@]}"; } >/dev/null 2>&1 ||
    fail "apt-get could not install ${needed[*]}."
