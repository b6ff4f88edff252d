#!/bin/sh
# Builds with clang and its sanitizers, whatever compiler the project is built with.
#
#	build.sh CLANG ROOT SQL_FOLDER library OUTPUT.a SOURCE.c...   the library, instrumented
#	build.sh CLANG ROOT SQL_FOLDER object FOLDER SOURCE.c        one object of the library
#	build.sh CLANG ROOT SQL_FOLDER program OUTPUT HARNESS.c LIBRARY.a
set -eu
self=$0
clang=$1 root=$2 sql=$3 what=$4 output=$5
shift 5

compile()
{
	# shellcheck disable=SC2046 # flags are words
	"$clang" -std=gnu11 -g -O1 -D_GNU_SOURCE -fno-omit-frame-pointer -Wno-overlength-strings \
		-fsanitize=address,undefined -fno-sanitize-recover=undefined \
		-I"$root/include" -I"$root/lib" -I"$root/tests/fuzz" -I"$sql" $(pkg-config --cflags libpq) "$@"
}

if [ "$what" = program ]; then
	# shellcheck disable=SC2046
	compile -fsanitize=fuzzer "$1" "$2" -o "$output" $(pkg-config --libs libpq)
	exit
fi
if [ "$what" = object ]; then
	compile -fsanitize=fuzzer-no-link -c "$1" -o "$output/$(basename "$1" .c).o"
	exit
fi
objects=$output.objects
rm -rf "$objects" "$output"
mkdir -p "$objects"
# The build waits for this one at its end, when no other command is left for the second core.
printf '%s\0' "$@" |
	xargs -0 -n 1 -P "$(nproc)" "$self" "$clang" "$root" "$sql" object "$objects"
ar rcs "$output" "$objects"/*.o
