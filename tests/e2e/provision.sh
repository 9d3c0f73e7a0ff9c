#!/usr/bin/env bash
# Installs what the end-to-end tests need from Debian's packages; needs root only where something
# is missing. Engines are configured by the tests themselves, never machine-wide.
set -euo pipefail

need() {
  local program=$1 package=$2
  command -v "$program" >/dev/null || missing+=("$package")
}

missing=()
need podman podman
need buildah buildah
need runc runc
need skopeo skopeo
need docker-registry docker-registry
need mmdebstrap mmdebstrap
need git git
need node nodejs
need npm npm
# What mmdebstrap checks Debian's release with; Debian itself has it.
[[ -e /usr/share/keyrings/debian-archive-keyring.gpg ]] || missing+=(debian-archive-keyring)

if ((${#missing[@]} == 0)); then
  echo "provision: everything is here"
  exit 0
fi
echo "provision: installing ${missing[*]}"
as_root=(env DEBIAN_FRONTEND=noninteractive)
if ((EUID != 0)); then
  if ! sudo -n true 2>/dev/null; then
    echo "provision: run as root once, or install: ${missing[*]}" >&2
    exit 4
  fi
  as_root=(sudo -n "${as_root[@]}")
fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
