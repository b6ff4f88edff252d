#!/bin/sh
# SPDX-License-Identifier: MIT
# Shows libqretention at work: what it deletes, what it keeps, and why.
#
#	sh examples/demo.sh                   on a private PostgreSQL, made for it and removed
#	sh examples/demo.sh --dsn CONNINFO    on a server of yours, in schemas of its own
#
# The first form installs what is missing through apt, as root or with sudo. Both leave nothing
# running and nothing behind, also after a Ctrl-C. QRETENTION_BUILD names a build folder to use, by
# its whole path, instead of build-demo/.
set -u
exec </dev/null 3>&2
umask 022

here=$(cd "$(dirname "$0")" && pwd) || exit 1
root=$(dirname "$here")
# shellcheck source=SCRIPTDIR/../tests/setup.sh
. "$root/tests/setup.sh"

work=
lock=
built=
server_bin=
server_runs=no
schemas_made=no
dsn=

log_schema=queen
streams_schema=queen_streams
event_schema=outbox
demo_schema=qretention_demo
options=

# ---- talking to the person ------------------------------------------------------------------------

bold=''
dim=''
plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
	bold=$(printf '\033[1m')
	dim=$(printf '\033[2m')
	plain=$(printf '\033[0m')
fi

title()
{
	printf '\n%s%s%s\n' "$bold" "$*" "$plain"
}

say()
{
	printf '   %s\n' "$@"
}

item()
{
	printf '   %-12s %s\n' "$1" "$2"
}

indent()
{
	sed 's/^/   /'
}

command_line()
{
	printf '   %s$ %s%s\n' "$dim" "$*" "$plain"
}

fail()
{
	printf 'demo: %s\n' "$*" >&2
	exit 1
}

# quietly LOG COMMAND...: shows what it wrote only where it failed.
quietly()
{
	log=$1
	shift
	"$@" >"$log" 2>&1 || {
		cat "$log" >&2
		fail "this failed: $*"
	}
}

# ---- beginning and end --------------------------------------------------------------------------

usage()
{
	cat <<'END'
usage: sh examples/demo.sh [--dsn CONNINFO]

Shows libqretention at work: what it deletes, what it keeps, and why.

Without --dsn, a private PostgreSQL is made for it and removed at the end; what
is missing is installed through apt, as root or with sudo. With --dsn it runs on
a server of yours, in schemas of its own that are dropped at the end.
END
}

read_arguments()
{
	while [ $# -gt 0 ]; do
		case $1 in
		--dsn)
			[ $# -gt 1 ] || fail "--dsn needs a connection string"
			dsn=$2
			shift
			;;
		--dsn=*) dsn=${1#--dsn=} ;;
		-h | --help)
			usage
			exit 0
			;;
		*) fail "unknown argument: $1 (try --help)" ;;
		esac
		shift
	done
}

as_server_user()
{
	if [ "$(id -u)" -eq 0 ]; then
		runuser -u postgres -- "$@"
	else
		"$@"
	fi
}

drop_schemas()
{
	for schema in $demo_schema $log_schema $streams_schema $event_schema; do
		sql -c "DROP SCHEMA IF EXISTS $schema CASCADE" >/dev/null 2>&1 || :
	done
}

clean_up()
{
	trap '' INT TERM HUP PIPE
	[ $schemas_made = no ] || drop_schemas
	[ -z "$lock" ] || give_lock_back
	[ $server_runs = no ] ||
		as_server_user "$server_bin/pg_ctl" -D "$work/data" -m immediate stop >/dev/null 2>&1
	[ -z "$work" ] || rm -rf "$work"
}

on_signal()
{
	printf '\ndemo: interrupted; cleaning up\n' >&3 # 2 may be some command's at this moment
	exit 130
}

# ---- what is needed ---------------------------------------------------------------------------------

build()
{
	began=$(date +%s)
	printf '   %-12s ' build
	built=${QRETENTION_BUILD:-$root/build-demo}
	[ -w "$root" ] || built=$work/build
	cd "$root" || exit 1
	quietly "$work/build.log" setup_build "$built" -Dexamples=true -Dtests=false -Dman=false
	cd / || exit 1
	echo "done in $(($(date +%s) - began)) s"
	# What is set for a host of the user's would steer the broker's retention too.
	for name in $(run_built qretention options --no-environment | sed -n 's/.*; environment //p'); do
		unset "$name"
	done
}

# run_built PROGRAM ARGUMENT...: without /proc, as in a bare chroot, the loader cannot tell where a
# program lies, and so would not find the library beside it.
run_built()
{
	program=$1
	shift
	LD_LIBRARY_PATH=$built/lib "$built/examples/$program/$program" "$@"
}

start_server()
{
	server_bin=$(find /usr/lib/postgresql/*/bin -name initdb 2>/dev/null | sort -V | tail -n 1)
	[ -n "$server_bin" ] || fail "no PostgreSQL server found"
	server_bin=$(dirname "$server_bin")
	[ "$(id -u)" -ne 0 ] || chown postgres "$work"
	cd "$work" || exit 1
	quietly "$work/step.log" as_server_user "$server_bin/initdb" -D "$work/data" -U postgres -A trust \
		-E UTF8 --locale=C --no-sync
	server_runs=yes
	quietly "$work/step.log" as_server_user "$server_bin/pg_ctl" -D "$work/data" -l "$work/server.log" \
		-w -o "-k $work -c listen_addresses= -c fsync=off" start
	dsn="host=$work user=postgres dbname=postgres"
	item PostgreSQL "$(sql -c 'SHOW server_version' | cut -d' ' -f1), private, on a unix socket only"
	item folder "$work"
}

# Two demonstrations in one database would take each other's schemas for leftovers. The lock is the
# session's, and the session's end is ours, however we end.
take_lock()
{
	mkfifo "$work/lock"
	sql <"$work/lock" >"$work/locked" 2>"$work/error" &
	lock=$!
	exec 4>"$work/lock"
	echo "SELECT pg_try_advisory_lock(7370018);" >&4
	while [ ! -s "$work/locked" ] && kill -0 $lock 2>/dev/null; do
		sleep 0.1
	done
	case $(cat "$work/locked") in
	t) ;;
	f) fail "another demonstration is running in that database" ;;
	*)
		cat "$work/error" >&2
		fail "cannot use that server"
		;;
	esac
}

give_lock_back()
{
	exec 4>&-
	wait $lock
}

# On a server of the user's: names that nobody else has, and a lock that no real broker uses.
use_server()
{
	log_schema=qretention_demo_log
	streams_schema=qretention_demo_streams
	event_schema=qretention_demo_outbox
	options="--set log_schema=$log_schema --set streams_schema=$streams_schema
		--set event_schema=$event_schema --set gate_key=7370017"
	version=$(sql -c 'SHOW server_version' 2>"$work/error") || {
		cat "$work/error" >&2
		fail "cannot use that server"
	}
	item PostgreSQL "${version%% *}, yours; schemas $demo_schema*"
	take_lock
	mark=$(sql -c "SELECT obj_description(oid) FROM pg_namespace WHERE nspname = '$demo_schema'")
	if [ "$mark" = "libqretention demo" ]; then
		drop_schemas # left by a demo that could not clean up
	fi
	there=$(sql -c "SELECT string_agg(nspname, ', ') FROM pg_namespace
		WHERE nspname IN ('$demo_schema', '$log_schema', '$streams_schema', '$event_schema')")
	[ -z "$there" ] || fail "these schemas exist and are not the demo's: $there"
}

sql()
{
	psql -X -q -A -t -w -v ON_ERROR_STOP=1 -v log="$log_schema" -v streams="$streams_schema" \
		-v event="$event_schema" -v demo="$demo_schema" -d "$dsn" "$@"
}

script()
{
	sql -f "$here/demo/$1.sql" || fail "demo/$1.sql failed"
}

# The commands are shown as a person would type them: connection and schemas are set already.
driver()
{
	command_line "qretention $*"
	code=0
	# shellcheck disable=SC2086 # a list of words
	run_built qretention "$@" --dsn "$dsn" --no-environment $options >"$work/driver.log" \
		2>"$work/driver.err" || code=$?
	indent <"$work/driver.log"
	[ $code -eq 0 ] || {
		cat "$work/driver.err" >&2
		fail "qretention ended with exit code $code"
	}
}

run_broker()
{
	run_built broker --dsn "$dsn" --log-schema "$log_schema" --broker-schema "$demo_schema" "$@" \
		>"$work/broker.log" 2>&1 || {
		cat "$work/broker.log" >&2
		fail "the broker failed"
	}
}

# ---- the acts ---------------------------------------------------------------------------------------

install_packages()
{
	if command -v dpkg-query >/dev/null; then
		# shellcheck disable=SC2086 # a list of words
		{ setup_packages $SETUP_BUILD_PACKAGES "$@" || : >"$work/no-packages"; } | indent
		[ ! -e "$work/no-packages" ] || fail "cannot install the packages that are missing"
	fi
	for program in psql meson cc; do
		command -v "$program" >/dev/null || fail "$program is missing"
	done
	item packages "nothing is missing"
}

prepare()
{
	title "Getting ready"
	if [ -z "$dsn" ]; then
		# shellcheck disable=SC2086 # lists of words
		install_packages $SETUP_SERVER_PACKAGES
	else
		install_packages postgresql-client
	fi
	build
	if [ -z "$dsn" ]; then
		start_server
	else
		use_server
	fi
	schemas_made=yes
	sql -c "CREATE SCHEMA $demo_schema" -c "COMMENT ON SCHEMA $demo_schema IS 'libqretention demo'" ||
		fail "cannot create a schema"
	driver install broker log event
}

fill_log()
{
	title "A broker fills a log of five queues, with groups of readers"
	say "A segment is one pushed batch of messages. Groups read a queue at their own" \
		"pace. A sidecar row beside each segment holds what finds duplicates."
	echo
	say "queue      its policy: what may go                  who reads it" \
		"orders     all that is older than 1 day             billing, fast" \
		"invoices   what every group read, after 10 minutes  ledger fast, audit slow" \
		"signals    what waited 30 minutes, read or not      nobody" \
		"clicks     what every group read, after 10 minutes  report, absent" \
		"archive    nothing                                  search, fast"
	run_broker --rate 0 --pushes 600 --duplicates 5 --dead-letters 15 --drain --seed 4 \
		--queue orders,partitions=3,retention=86400,dedup=3600,groups=billing:fast \
		--queue invoices,partitions=2,completed=600,dedup=3600,groups=ledger:fast+audit:slow \
		--queue signals,partitions=2,max_wait=1800,dedup=3600 \
		--queue clicks,partitions=2,completed=600,dedup=3600,groups=report:absent \
		--queue archive,dedup=3600,groups=search:fast
	echo
	head -n 2 "$work/broker.log" | indent
	script age
	script empty_partitions >/dev/null
	echo
	say "Then three quarters of each partition are made two days older, and a sixth" \
		"queue, sessions, gets five partitions that are empty, four for 60 days."
}

first_cycle()
{
	title "One cycle of retention"
	script remember 2>/dev/null
	driver cycle --verbose
	echo
	say "A host's log gets the same as one line:"
	grep event=swept "$work/driver.err" | fold -s -w 76 | sed 's/ *$//' | indent
	echo
	say "queue         segments      sidecar      why the rest stayed"
	script queues
	echo
	say "The sidecar ages in every queue, once no duplicate can meet it any more." \
		"Of the empty partitions of sessions:"
	script partitions
	echo
	say "The audit table says what went, and by which rule:" \
		"rule                     steps  messages  deleted what is"
	script audit
	echo
	script untouched
}

second_cycle()
{
	title "The group audit catches up, and the next cycle takes what it held"
	script catch_up
	script remember 2>/dev/null
	driver cycle
	echo
	say "queue         segments      sidecar      why the rest stayed"
	script queues | grep invoices
}

outbox()
{
	title "An outbox beside the log: events, deleted once nothing is owed on them"
	script outbox
	driver prune
	echo
	say "event                             left  why"
	script outbox_rest
}

serve()
{
	title "A broker that runs retention in its own loop, and serves meanwhile"
	run_broker --rate 0 --pushers 2 --pushes 4000 --payload 160 --consumers 0 \
		--queue load,partitions=4,retention=600
	script backlog
	say "Its log has 4,000 segments that are due. It pushes 200 times a second for" \
		"four seconds, and cycles run in the same process and on the same poll(2):"
	command_line "broker --retention --rate 200 --duration 4 --queue load,..."
	# shellcheck disable=SC2086 # a list of words
	run_broker --retention $options --set interval_ms=500 --rate 200 --duration 4 --payload 160 \
		--queue load,partitions=4,retention=600,groups=reader:fast
	indent <"$work/broker.log"
}

finish()
{
	title "The end"
	if [ $server_runs = yes ]; then
		say "The private server and its data are removed now; nothing is left running."
	else
		say "The demo's schemas are dropped from your server now."
	fi
	say "Next: README.md, \`qretention --help\`, and sh tests/run.sh for the tests."
	echo
}

main()
{
	read_arguments "$@"
	if [ -z "$dsn" ]; then
		setup_environment
	else # whose PG* variables may be needed
		PATH=$PATH:/usr/sbin:/sbin
		export LC_ALL=C.UTF-8
	fi
	folder=${TMPDIR:-/tmp}
	[ ${#folder} -le 40 ] || folder=/tmp # a socket's path has an end
	work=$(mktemp -d "$folder/qretention-demo.XXXXXX") || exit 1
	chmod 755 "$work"
	trap clean_up EXIT
	trap on_signal INT TERM HUP
	trap 'exit 141' PIPE # whoever read this went away
	printf '%slibqretention%s: what retention deletes, what it keeps, and why\n' "$bold" "$plain"
	prepare
	fill_log
	first_cycle
	second_cycle
	outbox
	serve
	finish
}

main "$@"
