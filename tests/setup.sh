# shellcheck shell=sh
# Debian packages for the build, the demo and the tests. Sourced, not run; it changes no directory.
# Callers: tests/run.sh, examples/demo.sh.

SETUP_BUILD_PACKAGES="gcc libc6-dev pkgconf meson ninja-build libpq-dev"
SETUP_SERVER_PACKAGES="postgresql-15"
SETUP_TEST_PACKAGES="check valgrind libc6-dbg clang libclang-rt-14-dev clang-format-14 g++
	abigail-tools openssl mandoc
	python3 python3-pytest python3-pytest-timeout python3-pytest-xdist python3-psycopg2
	build-essential debhelper fakeroot lintian musl-tools luajit golang-go
	postgresql-server-dev-15 libkrb5-dev libldap-dev"

# What every command after this can count on, also in a bare chroot and under an odd login.
setup_environment()
{
	LC_ALL=C.UTF-8
	PATH="${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin"
	export LC_ALL PATH
	unset LANGUAGE MAKEFLAGS
	# All of libpq's: one that is left (PGHOSTADDR, PGCHANNELBINDING) can lead away from our servers.
	for name in $(env | sed -n 's/^\(PG[A-Z]*\)=.*/\1/p'); do
		unset "$name"
	done
}

setup_as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1; then
		sudo "$@"
	else
		echo "cannot install packages: neither root nor sudo; needed: $*" >&2
		return 1
	fi
}

# setup_for_commands COMMAND=PACKAGE...: prints the packages of the commands that are not there, since
# these often come from elsewhere, under which the packages would not install.
setup_for_commands()
{
	for pair in "$@"; do
		command -v "${pair%%=*}" >/dev/null 2>&1 || echo "${pair#*=}"
	done
}

# 32-bit headers and libraries, where Debian has them beside the machine's own.
setup_multilib()
{
	[ "$(dpkg --print-architecture 2>/dev/null)" != amd64 ] || echo gcc-multilib
}

# setup_missing PACKAGE...: prints those that are not installed.
setup_missing()
{
	for package in "$@"; do
		status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=
		[ "$status" = installed ] || echo "$package"
	done
}

# Installing the server would start a cluster of its own, which nobody asked for.
setup_no_default_cluster()
{
	setup_as_root sh -c '
		folder=/etc/postgresql-common/createcluster.d
		mkdir -p "$folder" &&
			echo "create_main_cluster = false" >"$folder/qretention-setup.conf"'
}

setup_default_cluster_again()
{
	setup_as_root rm -f /etc/postgresql-common/createcluster.d/qretention-setup.conf
}

setup_apt()
{
	setup_as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l apt-get -q \
		-o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold \
		"$@" </dev/null
}

# setup_packages PACKAGE...: installs what is missing, and says nothing where nothing is.
setup_packages()
{
	missing=$(setup_missing "$@")
	[ -n "$missing" ] || return 0
	# shellcheck disable=SC2086 # a list of words
	echo "installing:" $missing
	new_server=no
	case "$missing" in
	*postgresql-15*)
		new_server=yes
		setup_no_default_cluster || return 1
		;;
	esac
	installed=yes
	log=$(mktemp) || return 1
	# shellcheck disable=SC2086 # a list of words
	{
		setup_apt update && setup_apt install -y --no-install-recommends $missing
	} >"$log" 2>&1 || installed=no
	[ $installed = yes ] || cat "$log" >&2
	rm -f "$log"
	[ $new_server = no ] || setup_default_cluster_again
	[ $installed = yes ]
}

# setup_build FOLDER [meson setup options]: configures where needed, then builds.
setup_build()
{
	folder=$1
	shift
	if [ ! -f "$folder/build.ninja" ]; then
		meson setup "$folder" "$@" || return 1
	fi
	meson compile -C "$folder"
}

SETUP_TEST_PACKAGES="$SETUP_TEST_PACKAGES $(setup_multilib)
	$(setup_for_commands node=nodejs npm=npm rustc=rustc)"
