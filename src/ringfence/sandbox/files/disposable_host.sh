#!/usr/bin/env bash
# Prepares a throw-away Debian or Ubuntu machine for agents: a user without rights, no way to the metadata service,
# every new connection of that user in the kernel log. Run as root, once; a second run changes nothing more.
set -euo pipefail

user="${1:-agentrun}"
table="ringfence_host"

[ "$(id -u)" = 0 ] || { echo "run this as root" >&2; exit 1; }
command -v nft >/dev/null || { echo "nft is missing: apt-get install nftables" >&2; exit 1; }

if ! id "$user" >/dev/null 2>&1; then
  useradd --create-home --shell /bin/bash "$user"
fi
passwd --lock "$user" >/dev/null
for group in sudo wheel docker lxd libvirt adm disk; do
  if id -nG "$user" | tr ' ' '\n' | grep -qx "$group"; then
    gpasswd --delete "$user" "$group" >/dev/null
  fi
done
chmod 0750 "$(getent passwd "$user" | cut -d: -f6)"

uid="$(id -u "$user")"
nft -f - <<RULES
table inet $table
delete table inet $table
table inet $table {
  chain out {
    type filter hook output priority 0; policy accept;
    meta skuid $uid ip daddr { 169.254.0.0/16, 100.100.100.200 } log prefix "AGENT-METADATA " reject with icmpx admin-prohibited
    meta skuid $uid ip6 daddr { fe80::/10, fd00:ec2::/32 } log prefix "AGENT-METADATA " reject with icmpx admin-prohibited
    meta skuid $uid ct state new log prefix "AGENT-EGRESS "
  }
}
RULES
mkdir -p /etc/ringfence
nft list table inet "$table" > /etc/ringfence/host.nft

echo "ready: $user (uid $uid) has no password, no sudo, no metadata; its connections are logged as AGENT-EGRESS"
echo "check: sudo -u $user ringfence doctor --host"
