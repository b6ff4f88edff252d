#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the Debian packages from this tree, in a folder that is made for it.
#
#	sh packaging/build-deb.sh FOLDER [dpkg-buildpackage options]
set -eu
if [ $# -lt 1 ]; then
	sed -n 's/^# \{0,1\}//p' "$0" | sed -n '2,4p' >&2
	exit 2
fi
folder=$1
shift
root=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" "$root/meson.build")
source=libqretention-$version

mkdir -p "$folder"
cd "$folder"
folder=$(pwd)
inside=
case $folder/ in
"$root/") echo "build-deb.sh: name another folder than the tree's own" >&2 && exit 2 ;;
"$root"/*) inside=./${folder#"$root"/} ;; # which must not be packed into itself
esac
rm -rf "$source"
mkdir "$source"
(
	cd "$root"
	tar -cf - --exclude='./build*' --exclude=./.git --exclude=node_modules --exclude=__pycache__ \
		--exclude=.pytest_cache ${inside:+"--exclude=$inside"} .
) | tar -xf - -C "$source"
tar -czf "libqretention_$version.orig.tar.gz" "$source"
cp -r "$source/packaging/debian" "$source/debian"
cd "$source"
dpkg-buildpackage -us -uc "$@"
