/* SPDX-License-Identifier: MIT */
/* conninfo with libpq itself: hosts, limits per host, refusals, and never an echo of a password. B31, B35. */
#include "unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "connect.h"

static struct error error;

/* No environment, no password file: what a test does not set is not there. */
static void clear_environment(void)
{
	static const char *const names[] = {
		"PGHOST",     "PGHOSTADDR", "PGPORT",    "PGUSER",        "PGDATABASE",
		"PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGSERVICEFILE", "PGTARGETSESSIONATTRS"
	};

	for (size_t i = 0; i < COUNT_OF(names); i++)
		unsetenv(names[i]);
	setenv("HOME", "/nonexistent", 1);
}

static int parse(const char *conninfo, uint32_t *ret_hosts)
{
	struct target *target = NULL;
	int rc;

	memset(&error, 0, sizeof(error));
	rc = target_new(conninfo, &target, &error);
	ck_assert((rc == QRET_DONE) == (target != NULL));
	if (target != NULL && ret_hosts != NULL)
		*ret_hosts = target_hosts(target);
	target_free(target);
	return rc;
}

START_TEST(connect_counts_hosts)
{
	static const struct {
		const char *conninfo;
		uint32_t hosts;
	} rows[] = {
		{ NULL, 1 },
		{ "", 1 },
		{ "dbname=x", 1 },
		{ "host=a", 1 },
		{ "host=a,b,c", 3 },
		{ "host=a,b,c port=1,2,3", 3 },
		{ "host=a,b,c port=5433", 3 },
		{ "hostaddr=127.0.0.1,127.0.0.2", 2 },
		{ "postgresql://a:1,b:2/db?target_session_attrs=primary", 2 },
		{ "host=/tmp,/var/run", 2 },
	};

	clear_environment();
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		uint32_t hosts = 0;

		ck_assert_int_eq(parse(rows[i].conninfo, &hosts), QRET_DONE);
		ck_assert_msg(hosts == rows[i].hosts, "%s: %u", rows[i].conninfo, hosts);
	}
}
END_TEST

START_TEST(connect_environment_serves)
{
	uint32_t hosts = 0;

	clear_environment();
	setenv("PGHOST", "a,b", 1);
	ck_assert_int_eq(parse("", &hosts), QRET_DONE);
	ck_assert_uint_eq(hosts, 2);
	ck_assert_int_eq(parse("host=x", &hosts), QRET_DONE);
	ck_assert_uint_eq(hosts, 1);
	clear_environment();
}
END_TEST

/* Whatever is wrong with it, nothing of it comes back. */
START_TEST(connect_refusal_never_echoes)
{
	static const char *const broken[] = {
		"password=s3cret nonsense",     "password='s3cret",
		"s3cret=1 password=s3cret",     "postgresql://u:s3cret@[::1/x",
		"postgresql://u:s3cret%zz@h/x", "host=a =s3cret",
		"password = s3cret port",       "s3cret",
	};

	clear_environment();
	for (size_t i = 0; i < COUNT_OF(broken); i++) {
		ck_assert_msg(parse(broken[i], NULL) == QRET_ERR_OPTION, "%s", broken[i]);
		ck_assert_lacks(error.message, "s3cret");
		ck_assert_lacks(error.hint, "s3cret");
		ck_assert_str_ne(error.message, "");
		ck_assert(!error.retryable);
	}
}
END_TEST

/* libpq would say so when it connects; we say so at once, and never read past the end of a list. */
START_TEST(connect_lists_must_match)
{
	static const char *const uneven[] = {
		"host=a,b,c port=1,2",
		"host=a port=1,2",
		"host=a,b hostaddr=127.0.0.1",
		"host=a,b hostaddr=127.0.0.1,127.0.0.2,127.0.0.3",
		"host=a,b,c hostaddr=127.0.0.1,127.0.0.2",
	};

	clear_environment();
	for (size_t i = 0; i < COUNT_OF(uneven); i++)
		ck_assert_msg(parse(uneven[i], NULL) == QRET_ERR_OPTION, "%s", uneven[i]);
}
END_TEST

/* libpq would warn on stderr and go on without it. */
START_TEST(connect_refuses_open_password_file)
{
	char path[] = "/tmp/qretention-passfile-XXXXXX", conninfo[128],
	     folder[] = "/tmp/qretention-home-XXXXXX", home[64];
	int fd = mkstemp(path);

	clear_environment();
	ck_assert_int_ge(fd, 0);
	snprintf(conninfo, sizeof(conninfo), "host=a passfile=%s", path);
	ck_assert_int_eq(fchmod(fd, 0600), 0);
	ck_assert_int_eq(parse(conninfo, NULL), QRET_DONE);
	ck_assert_int_eq(fchmod(fd, 0640), 0);
	ck_assert_int_eq(parse(conninfo, NULL), QRET_ERR_OPTION);
	ck_assert_contains(error.hint, "0600");
	ck_assert_int_eq(fchmod(fd, 0604), 0);
	ck_assert_int_eq(parse(conninfo, NULL), QRET_ERR_OPTION);
	/* with a password in the conninfo libpq does not look at the file */
	snprintf(conninfo, sizeof(conninfo), "host=a password=x passfile=%s", path);
	ck_assert_int_eq(parse(conninfo, NULL), QRET_DONE);
	setenv("PGPASSFILE", path, 1);
	ck_assert_int_eq(parse("host=a", NULL), QRET_ERR_OPTION);
	unsetenv("PGPASSFILE");
	close(fd);
	unlink(path);
	/* no file at all is fine, a folder of that name is not */
	ck_assert_int_eq(parse("host=a passfile=/nonexistent/file", NULL), QRET_DONE);
	ck_assert_int_eq(parse("host=a passfile=/tmp", NULL), QRET_ERR_OPTION);
	/* the usual place */
	ck_assert_ptr_nonnull(mkdtemp(folder));
	setenv("HOME", folder, 1);
	snprintf(home, sizeof(home), "%s/.pgpass", folder);
	fd = open(home, O_CREAT | O_WRONLY, 0666);
	ck_assert_int_eq(fchmod(fd, 0666), 0);
	ck_assert_int_eq(parse("host=a", NULL), QRET_ERR_OPTION);
	close(fd);
	unlink(home);
	rmdir(folder);
	clear_environment();
}
END_TEST

/* When a lost connection is reopened, months later, the file may be another one. */
START_TEST(connect_refuses_password_file_opened_since)
{
	const struct connect_limits limits = { 1000, 0 };
	char path[] = "/tmp/qretention-passfile-XXXXXX", conninfo[128];
	int fd = mkstemp(path);

	clear_environment();
	snprintf(conninfo, sizeof(conninfo),
	         "host=/nonexistent/a,/nonexistent/b port=1 passfile=%s", path);
	for (int mode = 0600; mode <= 0640; mode += 0040) {
		struct pg_conn *connection = NULL;
		struct target *target = NULL;
		struct connect connect;

		ck_assert_int_eq(fchmod(fd, 0600), 0);
		ck_assert_int_eq(target_new(conninfo, &target, &error), QRET_DONE);
		ck_assert_int_eq(fchmod(fd, (mode_t)mode), 0);
		connect_begin(&connect, target, limits);
		ck_assert_int_eq(connect_process(&connect, &connection, &error),
		                 mode == 0600 ? QRET_ERR_CONNECTION : QRET_ERR_OPTION);
		ck_assert_int_eq(error.retryable, mode == 0600);
		connect_abandon(&connect);
		target_free(target);
	}
	close(fd);
	unlink(path);
}
END_TEST

/* A service file's own values must not lose to compiled defaults. */
START_TEST(connect_service_is_libpqs)
{
	char path[] = "/tmp/qretention-service-XXXXXX";
	static const char text[] = "[mine]\nhost=127.0.0.1\nport=1\nuser=somebody\ndbname=base\n";
	struct connect connect;
	struct target *target = NULL;
	int fd = mkstemp(path);

	clear_environment();
	ck_assert_int_eq(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
	close(fd);
	setenv("PGSERVICEFILE", path, 1);
	ck_assert_int_eq(target_new("service=mine", &target, &error), QRET_DONE);
	connect_begin(&connect, target, (struct connect_limits){ 1000, 0 });
	ck_assert_ptr_nonnull(connect.connection);
	ck_assert_str_eq(PQhost(connect.connection), "127.0.0.1");
	ck_assert_str_eq(PQport(connect.connection), "1");
	ck_assert_str_eq(PQuser(connect.connection), "somebody");
	ck_assert_str_eq(PQdb(connect.connection), "base");
	connect_abandon(&connect);
	target_free(target);
	unlink(path);
	clear_environment();
}
END_TEST

/* ---- Against sockets of our own --------------------------------------------------------------- */

static int listen_on(uint16_t *ret_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	*ret_port = ntohs(address.sin_port);
	return fd;
}

/* Runs an attempt to its end; returns its code. */
static int attempt(const char *conninfo, int64_t timeout_ms)
{
	struct target *target = NULL;
	struct pg_conn *connection = NULL;
	struct connect connect;
	int rc;

	memset(&error, 0, sizeof(error));
	ck_assert_int_eq(target_new(conninfo, &target, &error), QRET_DONE);
	connect_begin(&connect, target, (struct connect_limits){ timeout_ms, 30000 });
	while ((rc = connect_process(&connect, &connection, &error)) == QRET_WAIT) {
		struct pollfd fd = { PQsocket(connect.connection),
			             connect.events == QRET_POLL_READ ? POLLIN : POLLOUT, 0 };

		poll(&fd, 1, 20);
	}
	ck_assert_ptr_null(connection);
	connect_abandon(&connect);
	target_free(target);
	return rc;
}

START_TEST(connect_refused_is_connection)
{
	clear_environment();
	ck_assert_int_eq(attempt("host=/nonexistent user=u dbname=d", 1000), QRET_ERR_CONNECTION);
	ck_assert_str_ne(error.message, "");
	ck_assert(error.retryable);
	ck_assert_str_eq(error.sqlstate, "");
}
END_TEST

/* A deaf host costs its limit, then the next is tried. */
START_TEST(connect_limit_is_per_host)
{
	char conninfo[160];
	uint16_t deaf, other;
	int deaf_fd = listen_on(&deaf), other_fd = listen_on(&other);
	int64_t start_us = qret_now_us();

	clear_environment();
	snprintf(
		conninfo, sizeof(conninfo),
		"hostaddr=127.0.0.1,127.0.0.1 port=%d,%d user=u dbname=d sslmode=disable gssencmode=disable",
		deaf, other);
	ck_assert_int_eq(attempt(conninfo, 100), QRET_ERR_TIMEOUT);
	ck_assert(error.retryable);
	ck_assert_contains(error.hint, "connect_timeout_ms");
	ck_assert_int_ge(qret_now_us() - start_us, 200000);
	/* both were tried */
	ck_assert_int_ge(accept(deaf_fd, NULL, NULL), 0);
	ck_assert_int_ge(accept(other_fd, NULL, NULL), 0);
	close(deaf_fd);
	close(other_fd);
}
END_TEST

/* Plays a server that refuses with this error, to whoever connects first. */
static int refuse_with(int listener, const char *fields, size_t length)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	uint8_t head[5] = { 'E' };
	char startup[1024];

	ck_assert_int_gt(read(fd, startup, sizeof(startup)), 0);
	head[3] = (uint8_t)((length + 4) >> 8);
	head[4] = (uint8_t)(length + 4);
	ck_assert_int_eq(write(fd, head, sizeof(head)), (ssize_t)sizeof(head));
	ck_assert_int_eq(write(fd, fields, length), (ssize_t)length);
	return fd;
}

#define REFUSAL(severity, state, text) \
	"S" severity "\0V" severity "\0C" state "\0M" text "\0Fauth.c\0L1\0Rauth_failed\0"

static void assert_refusal(const char *fields, size_t length, const char *sqlstate, bool retryable,
                           const char *message)
{
	struct target *target = NULL;
	struct pg_conn *connection = NULL;
	struct connect connect;
	char conninfo[160];
	uint16_t port;
	int listener = listen_on(&port), fd, rc;

	snprintf(
		conninfo, sizeof(conninfo),
		"hostaddr=127.0.0.1 port=%d user=u dbname=d password=s3cret sslmode=disable gssencmode=disable",
		port);
	ck_assert_int_eq(target_new(conninfo, &target, &error), QRET_DONE);
	connect_begin(&connect, target, (struct connect_limits){ 10000, 0 });
	rc = connect_process(&connect, &connection, &error);
	for (int i = 0; rc == QRET_WAIT && connect.events != QRET_POLL_READ && i < 1000; i++) {
		usleep(1000);
		rc = connect_process(&connect, &connection, &error);
	}
	fd = refuse_with(listener, fields, length);
	for (int i = 0; rc == QRET_WAIT && i < 5000; i++) {
		usleep(1000);
		rc = connect_process(&connect, &connection, &error);
	}
	ck_assert_int_eq(rc, QRET_ERR_CONNECTION);
	ck_assert_str_eq(error.sqlstate, sqlstate);
	ck_assert_int_eq(error.retryable, retryable);
	ck_assert_str_eq(error.message, message);
	ck_assert_lacks(error.message, "s3cret");
	connect_abandon(&connect);
	target_free(target);
	close(fd);
	close(listener);
}

/* Connect failures are classed by the server's SQLSTATE, whatever language it speaks. */
START_TEST(connect_refusals_are_classed)
{
	static const char password[] = REFUSAL("FATAL", "28P01",
	                                       "password authentication failed for user \"u\"");
	static const char too_many[] = REFUSAL("FATAL", "53300", "sorry, too many clients already");
	static const char starting[] = REFUSAL("FATAL", "57P03",
	                                       "the database system is starting up");
	static const char french[] = REFUSAL("FATALE", "3D000",
	                                     "la base de donn\xc3\xa9"
	                                     "es n'existe pas");
	static const char tricky[] = REFUSAL("FATAL", "28000", "role \"x:  57P03: y\" is bad");

	clear_environment();
	assert_refusal(password, sizeof(password), "28P01", false,
	               "password authentication failed for user \"u\"");
	assert_refusal(too_many, sizeof(too_many), "53300", true,
	               "sorry, too many clients already");
	assert_refusal(starting, sizeof(starting), "57P03", true,
	               "the database system is starting up");
	assert_refusal(french, sizeof(french), "3D000", false,
	               "la base de donn\xc3\xa9"
	               "es n'existe pas");
	assert_refusal(tricky, sizeof(tricky), "28000", false, "role \"x:  57P03: y\" is bad");
}
END_TEST

int main(void)
{
	const TTest *tests[] = { connect_counts_hosts,
		                 connect_environment_serves,
		                 connect_refusal_never_echoes,
		                 connect_lists_must_match,
		                 connect_refuses_open_password_file,
		                 connect_refuses_password_file_opened_since,
		                 connect_service_is_libpqs,
		                 connect_refused_is_connection,
		                 connect_limit_is_per_host,
		                 connect_refusals_are_classed,
		                 NULL };

	return unit_run("connect", tests);
}
