#!/bin/sh
# Installs what is missing, builds, and runs the tests.
#
#	sh tests/run.sh                      everything
#	sh tests/run.sh format unit model    these suites
#	sh tests/run.sh tests/sql/test_x.py  these files or folders, as pytest takes them
#
# Suites: format, unit, valgrind, clang, and every folder of tests/ that holds pytest files.
# QRETENTION_SEEDS=17 runs one seed of the model test; QRETENTION_JOBS=1 runs pytest in one process.
# The exit code is 0 only where every stage passed.
set -u
exec </dev/null
cd "$(dirname "$0")/.." || exit 1

. tests/setup.sh
setup_environment

python=/usr/bin/python3
stages=
failed=0
started=$(date +%s)

# stage NAME COMMAND...: runs it, remembers how it ended.
stage()
{
	name=$1
	shift
	printf '\n== %s\n' "$name"
	begun=$(date +%s)
	if "$@"; then
		verdict=ok
	else
		verdict=FAILED
		failed=1
	fi
	stages="$stages$(printf '%-10s %-7s %4d s' "$name" $verdict $(($(date +%s) - begun)))
"
	[ $verdict = ok ]
}

finish()
{
	printf '\n== summary\n%s' "$stages"
	if [ $failed -eq 0 ]; then
		verdict="all passed"
	else
		verdict="FAILED"
	fi
	printf '%s in %d s\n' "$verdict" $(($(date +%s) - started))
	exit $failed
}

# A bare chroot has no /proc, which valgrind and the memory test read, no terminals, which the
# program's tests want, and no memory to keep a test's database in. Taken away again at the end.
mounted=
mount_bare()
{
	[ "$(id -u)" -eq 0 ] || return 0
	if [ ! -e /proc/self/maps ] && mount -t proc proc /proc; then
		mounted="/proc"
	fi
	if [ -d /dev/pts ] && [ ! -e /dev/pts/ptmx ] && mount -t devpts devpts /dev/pts; then
		mounted="/dev/pts $mounted"
	fi
	if [ -d /dev/shm ] && ! mountpoint -q /dev/shm && mount -t tmpfs tmpfs /dev/shm; then
		mounted="/dev/shm $mounted"
	fi
}

umount_bare()
{
	for folder in $mounted; do
		umount -l "$folder"
	done
	mounted=
}

# A suite that needs more than the others names it in tests/<suite>/packages, one a line.
suite_packages()
{
	find tests -maxdepth 2 -name packages -exec sed 's/#.*//' {} +
}

packages()
{
	# shellcheck disable=SC2046,SC2086 # lists of words
	setup_packages $SETUP_BUILD_PACKAGES $SETUP_SERVER_PACKAGES $SETUP_TEST_PACKAGES \
		$(suite_packages)
}

# Tables of macro rows (lib/*_table.h) keep their columns.
sources()
{
	find include lib examples tests -name '*.[ch]' -not -name '*_table.h' \
		-not -path '*/node_modules/*'
}

# One process for all files, since it takes longer to start than to look at one of them.
check_format()
{
	misplaced=$(sources | tr '\n' '\0' |
		xargs -0 clang-format-14 --style=file --dry-run -Werror 2>&1) && return 0
	printf '%s\n' "$misplaced" |
		sed -n 's/^\([^:]*\):[0-9][0-9:]* error: .*/clang-format-14 -i \1/p' |
		sort -u | grep . || printf '%s\n' "$misplaced"
	return 1
}

build_gcc()
{
	CC=gcc setup_build build -Dwerror=true
}

# For its warnings alone: nothing of it runs, and it needs no optimisation. The fuzz programs and the
# manual are in the other folder.
build_clang()
{
	CC=clang setup_build build-clang -Dwerror=true -Doptimization=0 -Ddebug=false \
		-Dfuzz=disabled -Dman=false
}

unit()
{
	CK_TIMEOUT_MULTIPLIER=5 meson test -C build --no-rebuild --print-errorlogs
}

unit_valgrind()
{
	meson test -C build --no-rebuild --print-errorlogs --setup valgrind
}

# pytest_run PATH...: two passes, since some tests want the machine for themselves. One process more
# than there are cores, since tests of time limits mostly wait.
pytest_run()
{
	jobs=${QRETENTION_JOBS:-$(($(nproc) + 1))}
	[ "$jobs" -le 4 ] || jobs=4
	PYTHONPYCACHEPREFIX="$PWD/build/pycache" PYTHONFAULTHANDLER=1
	export PYTHONPYCACHEPREFIX PYTHONFAULTHANDLER
	outcome=0
	pytest_pass -n "$jobs" -m 'not alone' "$@" || outcome=1
	pytest_pass -m alone "$@" || outcome=1
	return $outcome
}

# No test selected (5) is no failure of a pass.
pytest_pass()
{
	code=0
	timeout --kill-after=20 2400 "$python" -m pytest -q --durations=5 "$@" || code=$?
	[ $code -eq 0 ] || [ $code -eq 5 ]
}

pytest_suites()
{
	for folder in tests/*/; do
		if [ -n "$(find "$folder" -name 'test_*.py' -print -quit)" ]; then
			printf '%s\n' "${folder%/}"
		fi
	done
}

everything=no
wanted="$*"
if [ -z "$wanted" ]; then
	everything=yes
	wanted="format clang unit valgrind pytest"
fi

trap umount_bare EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mount_bare
stage packages packages || finish
stage build build_gcc || finish
paths=
for suite in $wanted; do
	case $suite in
	format) stage format check_format ;;
	clang) stage clang build_clang ;;
	unit) stage unit unit ;;
	valgrind) stage valgrind unit_valgrind ;;
	pytest) paths="$paths $(pytest_suites | tr '\n' ' ')" ;;
	*)
		if [ -e "tests/$suite" ]; then
			paths="$paths tests/$suite"
		else
			paths="$paths $suite"
		fi
		;;
	esac
done
if [ -n "$paths" ]; then
	# shellcheck disable=SC2086 # a list of words
	stage pytest pytest_run $paths
elif [ $everything = yes ]; then
	echo "no pytest suite found"
	failed=1
fi
finish
