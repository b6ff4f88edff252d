#!/bin/sh
# SPDX-License-Identifier: MIT
# Freezes the interface of the release that is being made: its header, and the dump of its types and
# symbols. Run it once a release, on x86-64, and look at what it changed before committing.
#
#	sh tests/abi/freeze.sh PREFIX           where the library is installed, with debug data
#	sh tests/abi/freeze.sh --dump PREFIX    prints the dump and changes nothing
set -eu

dump()
{
	abidw --headers-dir "$1/include" --drop-private-types --exported-interfaces-only \
		--no-corpus-path --no-comp-dir-path --no-show-locs --type-id-style hash \
		"$1/lib/libqretention.so" |
		sed "s|path='[^']*/\([^/']*\)'|path='\1'|"
}

if [ "$1" = --dump ]; then
	dump "$2"
	exit
fi
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's/^#define QRET_VERSION "\(.*\)"$/\1/p' "$1/include/qretention.h")
cp "$1/include/qretention.h" "$here/qretention-$version.h"
dump "$1" >"$here/libqretention.abi"
