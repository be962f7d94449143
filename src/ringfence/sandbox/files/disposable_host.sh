#!/usr/bin/env bash
# Prepares a throw-away Debian or Ubuntu machine for agents: a user without rights, no way to the metadata service,
# every new connection of that user in the kernel log, also after a reboot. Run as root, once; a second run changes nothing more.
set -euo pipefail

user="${1:-agentrun}"
table="ringfence_host"
rules="/etc/ringfence/host.nft"

[ "$(id -u)" = 0 ] || { echo "run this as root" >&2; exit 1; }
nft="$(command -v nft)" || { echo "nft is missing: apt-get install nftables" >&2; exit 1; }

if ! id "$user" >/dev/null 2>&1; then
  useradd --create-home --shell /bin/bash "$user"
fi
[ "$(id -u "$user")" != 0 ] || { echo "$user is root: name another user" >&2; exit 1; }
passwd --lock "$user" >/dev/null
usermod --groups "" "$user"
chmod 0750 "$(getent passwd "$user" | cut -d: -f6)"

uid="$(id -u "$user")"
mkdir -p /etc/ringfence
# The address of loopback is how `ringfence doctor --host` sees, as that user, that these rules are in force.
cat > "$rules" <<RULES
table inet $table
delete table inet $table
table inet $table {
  chain out {
    type filter hook output priority 0; policy accept;
    meta skuid $uid ip daddr 127.65.71.84 reject with icmpx admin-prohibited
    meta skuid $uid ip daddr { 169.254.0.0/16, 100.100.100.200, 192.0.0.192 } log prefix "AGENT-METADATA " reject with icmpx admin-prohibited
    meta skuid $uid ip daddr 168.63.129.16 tcp dport { 80, 32526 } log prefix "AGENT-METADATA " reject with icmpx admin-prohibited
    meta skuid $uid ip6 daddr { fe80::/10, fd00:ec2::/32, fd20:ce::254, fd00:42::42 } log prefix "AGENT-METADATA " reject with icmpx admin-prohibited
    meta skuid $uid ct state new log prefix "AGENT-EGRESS "
  }
}
RULES
"$nft" -f "$rules"

boot="load $rules at every boot yourself: no systemd here"
if [ -d /etc/systemd/system ]; then
  cat > /etc/systemd/system/ringfence-host.service <<UNIT
[Unit]
Description=Rules for the user that agents run as
DefaultDependencies=no
After=nftables.service
Before=network-pre.target
Wants=network-pre.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=$nft -f $rules

[Install]
WantedBy=multi-user.target
UNIT
  mkdir -p /etc/systemd/system/multi-user.target.wants
  ln -sf ../ringfence-host.service /etc/systemd/system/multi-user.target.wants/ringfence-host.service
  boot="the rules are loaded at every boot by ringfence-host.service"
fi

echo "ready: $user (uid $uid) has no password, no other group, no metadata; its connections are logged as AGENT-EGRESS"
echo "$boot"
echo "check: sudo -u $user ringfence doctor --host"
