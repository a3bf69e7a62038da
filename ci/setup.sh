# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced by ci/test and ci/smoke, which need Python, and by ci/stage's set-up, which installs what is
# missing. Writes nothing outside the package manager.

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd) || exit 1
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

# enable_repositories ID RELEASE: RHEL and its rebuilds keep some packages in CRB and EPEL; Fedora has
# them all. What cannot be enabled from here is said, with what to do instead.
enable_repositories() {
  case $1 in
    fedora | amzn) return 0 ;;
    rhel)
      crb=codeready-builder-for-rhel-$2-$(uname -m)-rpms
      as_root subscription-manager repos --enable "$crb" || {
        echo "$0: the repository $crb could not be enabled; is this system subscribed? Enable it" >&2
        echo "  (on cloud images: dnf config-manager --set-enabled 'codeready-builder-*') and run this" \
          "again" >&2
        exit 1
      }
      rpm -q --quiet epel-release || {
        echo "$0: EPEL is needed, and RHEL itself has no package that enables it; as root, run:" >&2
        echo "  dnf install https://dl.fedoraproject.org/pub/epel/epel-release-latest-$2.noarch.rpm" >&2
        echo "and then this again" >&2
        exit 1
      }
      ;;
    ol)
      as_root dnf -q -y install dnf-plugins-core "oracle-epel-release-el$2" || exit 1
      as_root dnf -q config-manager --set-enabled "ol$2_codeready_builder" || exit 1
      ;;
    *)
      as_root dnf -q -y install dnf-plugins-core epel-release || exit 1
      as_root dnf -q config-manager --set-enabled crb || exit 1
      ;;
  esac
}

# An interrupted earlier run may have left packages unpacked but not configured. dpkg itself does not
# wait for who holds its lock; this does, for ten minutes.
configure_unpacked() {
  waited=0
  until said=$(as_root env LC_ALL=C dpkg --configure -a 2>&1); do
    case $said in
      *lock*) ;;
      *) waited=600 ;;
    esac
    if [ "$waited" -ge 600 ]; then
      printf '%s\n' "$said" >&2
      return 1
    fi
    [ "$waited" -gt 0 ] || say "Another process holds dpkg's lock; waiting for at most ten minutes"
    sleep 5
    waited=$((waited + 5))
  done
}

# set_up USES: the packages of gen/deps.py for these uses, when some are not installed. The family of
# the distribution decides who installs them: a Debian system may have dnf as well, and the reverse.
set_up() {
  missing=$("$python" "$top/gen/tools/packages.py" --uses "$1" --missing) || exit 1
  [ -n "$missing" ] || return 0
  say "Installing: $(printf '%s' "$missing" | tr '\n' ' ')"
  system=$("$python" "$top/gen/tools/packages.py" --system) || exit 1
  family=${system%% *} release=${system##* } id=${system#* }
  case $family in
    debian)
      configure_unpacked || exit 1
      as_root apt-get -q -o DPkg::Lock::Timeout=600 update || exit 1
      # shellcheck disable=SC2086  # one word per package
      as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=600 \
        install --no-install-recommends $missing || exit 1
      ;;
    fedora)
      enable_repositories "${id% *}" "$release"
      # shellcheck disable=SC2086
      as_root dnf -q -y install --setopt=install_weak_deps=False $missing || exit 1
      ;;
    *)
      echo "$0: neither a Debian nor a Fedora system; install what ./configure.py asks for" >&2
      exit 1
      ;;
  esac
}
