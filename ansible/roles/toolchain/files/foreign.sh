#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# foreign.sh MACHINE ARCHITECTURE: lets dpkg install ARCHITECTURE's cross compilers for this system, that
# is MACHINE's. They depend on libraries whose packages are for all architectures, which dpkg counts as
# this system's own and as nobody else's. So an empty package of ARCHITECTURE says that it provides them.
# Writes the names of the true ones, which must be installed as well, and `new` if that package was.
set -eu
compiler=gcc-$1-linux-gnu
version=$(apt-cache show "$compiler:$2" | sed -n "s/^Depends:.* gcc-\([0-9][0-9]*\)-$1-linux-gnu.*/\1/p" | head -n 1)
[ -n "$version" ] || { echo "apt knows no $compiler:$2 that depends on one version of it" >&2; exit 1; }
provided=
for library in gcc stdc++ gfortran; do
  name=lib$library-$version-dev-$(dpkg --print-architecture)-cross
  echo "$name"
  provided="${provided:+$provided, }$name (= 99)"
done
[ "$(dpkg-query -W -f '${Provides}' "stack-cross-libraries:$2" 2>/dev/null)" != "$provided" ] || exit 0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/tree/DEBIAN"
cat > "$folder/tree/DEBIAN/control" <<END
Package: stack-cross-libraries
Version: $version
Architecture: $2
Maintainer: the role toolchain <root@localhost>
Provides: $provided
Description: cross libraries of this system, as its foreign compilers' packages ask for them
END
dpkg-deb --root-owner-group -b "$folder/tree" "$folder/package.deb" >&2
dpkg -i "$folder/package.deb" >&2
echo new
