#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the static archive: one relocatable object in which everything but the exported calls is
# local, so that a host may have a list_append or a log_error of its own.
#
#	archive.sh ARCHIVE OBJECTS.a SYMBOLS.sym AR OBJCOPY COMPILER...
set -eu
archive=$1
objects=$2
symbols=$3
ar=$4
objcopy=$5
shift 5

work=$(mktemp -d "$archive.XXXXXX")
trap 'rm -rf "$work"' EXIT
sed -n 's/^[[:space:]]*\(qret_[a-z0-9_]*\);$/\1/p' "$symbols" >"$work/keep"
"$@" -r -nostdlib -Wl,--whole-archive "$objects" -Wl,--no-whole-archive -o "$work/qretention.o"
"$objcopy" --keep-global-symbols="$work/keep" "$work/qretention.o"
rm -f "$archive"
"$ar" rcs "$archive" "$work/qretention.o"
