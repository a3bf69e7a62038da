# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced by ci/smoke and ci/test: install what is missing, configure, build. Writes nothing outside
# the build directory and the package manager.

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd) || exit 1
build=$top/build
python=/usr/bin/python3
[ -x "$python" ] || python=$(command -v python3) || {
  echo "$0: Python 3 is needed to begin with" >&2
  exit 1
}
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

say() { printf '\n== %s\n' "$*"; }

# Runs a package manager as root, with sudo when need be.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1; then
    sudo "$@"
  else
    echo "$0: packages are missing and this is neither root nor is there sudo; as root, run:" >&2
    echo "  $*" >&2
    exit 1
  fi
}

# set_up USES: the packages of gen/deps.py for these uses, when some are not installed.
set_up() {
  missing=$("$python" "$top/gen/tools/packages.py" --uses "$1" --missing) || exit 1
  [ -n "$missing" ] || return 0
  say "Installing: $(printf '%s' "$missing" | tr '\n' ' ')"
  if command -v apt-get >/dev/null 2>&1; then
    # An interrupted earlier run may have left packages unpacked but not configured.
    as_root dpkg --configure -a || exit 1
    as_root apt-get -q -o DPkg::Lock::Timeout=600 update || exit 1
    # shellcheck disable=SC2086  # one word per package
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=600 \
      install --no-install-recommends $missing || exit 1
  elif command -v dnf >/dev/null 2>&1; then
    # RHEL and its rebuilds keep some of these in CRB and EPEL; Fedora has them all.
    if ! grep -q '^ID=fedora' /etc/os-release; then
      as_root dnf -q -y install dnf-plugins-core epel-release || exit 1
      as_root dnf -q config-manager --set-enabled crb || exit 1
    fi
    # shellcheck disable=SC2086
    as_root dnf -q -y install --setopt=install_weak_deps=False $missing || exit 1
  else
    echo "$0: neither apt-get nor dnf is here; install what ./configure.py asks for" >&2
    exit 1
  fi
}

# make_product [CONFIGURE OPTION...]: an earlier configuration is kept unless options are given.
make_product() {
  say "Configuring"
  if [ $# -eq 0 ] && [ -f "$build/gen/configuration.json" ] && [ -f "$build/build.ninja" ]; then
    (cd "$build" && "$python" "$top/configure.py" --regenerate) || exit 1
    echo "kept the options of $build"
  else
    (cd "$top" && "$python" ./configure.py --build-dir="$build" "$@") || exit 1
  fi
  say "Building"
  ninja -C "$build" || exit 1
}
