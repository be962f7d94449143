#!/usr/bin/env bash
# Set-up for every make target: Debian packages (only as root and only if missing), virtual environment, pinned dependencies.
# Says what it does; does nothing the second time.
set -euo pipefail
cd "$(dirname "$0")/.."

# bubblewrap, nftables: the product. The rest: what the tests and the demo put into boxes or against them.
declare -A needs=(
  [git]=git [make]=make [bwrap]=bubblewrap [nft]=nftables [ip]=iproute2 [unshare]=util-linux [pgrep]=procps [curl]=curl
  [rg]=ripgrep [strace]=strace [gcc]=gcc [openssl]=openssl [ssh]=openssh-client [ssh-keygen]=openssh-client [wget]=wget [dig]=bind9-dnsutils [ping]=iputils-ping
)
# A real keyring for the tests of credentials. As root only: without it those tests are skipped.
if [ "$(id -u)" = 0 ]; then
  needs+=([secret-tool]=libsecret-tools [gnome-keyring-daemon]=gnome-keyring [dbus-daemon]=dbus)
fi
missing=()
for program in "${!needs[@]}"; do
  PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null 2>&1 || missing+=("${needs[$program]}")
done
for candidate in python3.11 python3.12 python3.13 python3; do
  if command -v "$candidate" >/dev/null 2>&1; then
    "$candidate" -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
    break
  fi
done
if ((${#missing[@]})); then
  if [ "$(id -u)" = 0 ]; then
    echo "setup: installing Debian packages: ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  else
    echo "setup: these Debian packages are missing and only root can install them:" >&2
    echo "         sudo apt-get install ${missing[*]}" >&2
    exit 1
  fi
fi

python=""
for candidate in python3.11 python3.12 python3.13 python3; do
  if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python="$candidate"; break
  fi
done
[ -n "$python" ] || { echo "setup: Python 3.11 or newer is needed and was not found on the PATH" >&2; exit 1; }

stamp=$(cat requirements.lock pyproject.toml scripts/setup.sh bin/ringfence | sha256sum | cut -c1-16)
if [ ! -x .venv/bin/python ] || [ "$(cat .venv/.stamp 2>/dev/null)" != "$stamp" ]; then
  if [ ! -x .venv/bin/python ]; then
    echo "setup: making the virtual environment .venv"
    "$python" -m venv .venv || { echo "setup: python3-venv is missing; as root: apt-get install python3-venv" >&2; exit 1; }
  fi
  echo "setup: installing the pinned dependencies"
  .venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
  .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
  printf '%s\n' "$stamp" > .venv/.stamp
fi
