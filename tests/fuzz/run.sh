#!/bin/sh
# Runs one fuzz program for a few seconds, beginning with its seeds. Skipped (77) where it could not be built, and under valgrind.
#
#	run.sh PROGRAM SEEDS [SECONDS]
set -u
program=$1 seeds=$2 seconds=${3:-2}
case ${LD_PRELOAD:-} in
*vgpreload*) exit 77 ;;
esac
[ -x "$program" ] || exit 77
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# Allocation tests of the harness put poison in: what is never freed is the sanitizer's to find.
unset MALLOC_PERTURB_
mkdir "$work/corpus"
"$program" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=1024 -artifact_prefix="$work/" -print_final_stats=0 \
	-verbosity=0 -close_fd_mask=0 "$work/corpus" "$seeds" >"$work/out" 2>&1
code=$?
if [ $code -ne 0 ]; then
	tail -60 "$work/out"
	for found in "$work"/crash-* "$work"/leak-* "$work"/timeout-* "$work"/oom-*; do
		[ -e "$found" ] && printf '%s: ' "$(basename "$found")" && od -An -c "$found" | head -40
	done
	exit 1
fi
