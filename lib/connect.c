/* SPDX-License-Identifier: MIT */
/*
 * Non-blocking connect, host by host. libpq's asynchronous connect ignores connect_timeout and
 * would sit on a deaf first host for ever, so the hosts are taken apart here and each gets its
 * own limit.
 */
#include "connect.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "clock.h"
#include "qretention.h"
#include "sqlstate.h"
#include "text.h"

#define KEYWORDS_MAX 80

struct target {
	PQconninfoOption *options; /* conninfo over environment over compiled defaults */
	char *password_file;       /* that libpq will look for; NULL: for none */
	uint32_t hosts;
};

static const char *value_of(const PQconninfoOption *options, const char *keyword)
{
	for (; options->keyword != NULL; options++) {
		if (strcmp(options->keyword, keyword) == 0)
			return options->val != NULL ? options->val : "";
	}
	return "";
}

static uint32_t list_length(const char *list)
{
	uint32_t length = 1;

	for (; *list != '\0'; list++)
		length += *list == ',';
	return length;
}

/* Part `index` of a comma-separated list; a list of one serves every index. */
static void list_part(const char *list, uint32_t index, char *target, size_t capacity)
{
	if (list_length(list) == 1)
		index = 0;
	while (index-- > 0) {
		list += strcspn(list, ",");
		list += *list == ',';
	}
	snprintf(target, capacity, "%.*s", (int)strcspn(list, ","), list);
}

/* Values that the conninfo gives itself replace those of the environment. */
static bool overlay(PQconninfoOption *base, const PQconninfoOption *own)
{
	for (; base->keyword != NULL; base++) {
		const char *value = value_of(own, base->keyword);
		char *copy;

		if (value[0] == '\0')
			continue;
		copy = strdup(value);
		if (copy == NULL)
			return false;
		free(base->val);
		base->val = copy;
	}
	return true;
}

/* Where libpq looks for the password, unless it is given one. */
static int find_password_file(struct target *target)
{
	char path[4096];
	const char *given = value_of(target->options, "passfile");

	if (value_of(target->options, "password")[0] != '\0')
		return QRET_DONE;
	if (given[0] != '\0') {
		snprintf(path, sizeof(path), "%s", given);
	} else {
		const char *home = getenv("HOME");
		struct passwd entry, *found = NULL;
		char buffer[4096];

		if (home == NULL || home[0] == '\0') {
			if (getpwuid_r(geteuid(), &entry, buffer, sizeof(buffer), &found) != 0 ||
			    found == NULL)
				return QRET_DONE;
			home = entry.pw_dir;
		}
		snprintf(path, sizeof(path), "%s/.pgpass", home);
	}
	target->password_file = strdup(path);
	return target->password_file == NULL ? QRET_ERR_NOMEM : QRET_DONE;
}

/*
 * libpq would complain on stderr about such a password file and go on without it: refuse it
 * first, each time, since the file may be another one by the time a lost connection is reopened.
 */
static int check_password_file(const struct target *target, struct error *error)
{
	struct stat status;

	if (target->password_file == NULL || stat(target->password_file, &status) != 0)
		return QRET_DONE;
	if (!S_ISREG(status.st_mode) || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		return error_set(error, QRET_ERR_OPTION, false,
		                 "make it a plain file with mode 0600",
		                 "the password file is not a plain file, or others may read it");
	return QRET_DONE;
}

/* libpq would refuse lists that do not match too, but only when it connects. */
static int count_hosts(struct target *target, struct error *error)
{
	const char *hosts = value_of(target->options, "host"),
		   *addresses = value_of(target->options, "hostaddr");
	uint32_t ports = list_length(value_of(target->options, "port"));

	target->hosts = list_length(addresses[0] != '\0' ? addresses : hosts);
	if ((hosts[0] != '\0' && list_length(hosts) != target->hosts) ||
	    (ports != 1 && ports != target->hosts))
		return error_set(
			error, QRET_ERR_OPTION, false,
			"give one port, or one for each host; likewise hostaddr",
			"the conninfo's lists of hosts, addresses and ports differ in length");
	return QRET_DONE;
}

/* Values that libpq would refuse later, repeating them in its message. A port is a number. */
static int check_values(const PQconninfoOption *options, struct error *error)
{
	static const struct {
		const char *keyword, *values;
	} known[] = {
		{ "sslmode", "|disable|allow|prefer|require|verify-ca|verify-full|" },
		{ "channel_binding", "|disable|prefer|require|" },
		{ "gssencmode", "|disable|prefer|require|" },
		{ "target_session_attrs",
		  "|any|read-write|read-only|primary|standby|prefer-standby|" },
		{ "ssl_min_protocol_version", "|TLSv1|TLSv1.1|TLSv1.2|TLSv1.3|" },
		{ "ssl_max_protocol_version", "|TLSv1|TLSv1.1|TLSv1.2|TLSv1.3|" },
	};
	const char *port = value_of(options, "port");

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const char *value = value_of(options, known[i].keyword);
		char wanted[40];

		snprintf(wanted, sizeof(wanted), "|%s|", value);
		if (value[0] != '\0' && strcasestr(known[i].values, wanted) == NULL)
			return error_set(error, QRET_ERR_OPTION, false,
			                 "see \"Connection Strings\" in PostgreSQL's manual",
			                 "the conninfo's value of %s is not one of its values",
			                 known[i].keyword);
	}
	if (port[strspn(port, "0123456789,")] != '\0')
		return error_set(error, QRET_ERR_OPTION, false, "a number, or numbers with commas",
		                 "the conninfo's port is not a number");
	return QRET_DONE;
}

int target_new(const char *conninfo, struct target **ret_target, struct error *error)
{
	struct target *target = NULL;
	PQconninfoOption *own = NULL;
	char *complaint = NULL;
	int rc = QRET_ERR_NOMEM;

	own = PQconninfoParse(conninfo == NULL ? "" : conninfo, &complaint);
	if (own == NULL) {
		bool short_of_memory = complaint == NULL ||
		                       strncmp(complaint, "out of memory", 13) == 0;

		/*
		 * What libpq complains about may hold a part of the password: it is not passed
		 * on.
		 */
		PQfreemem(complaint);
		if (short_of_memory)
			return error_set(error, QRET_ERR_NOMEM, true, NULL, "out of memory");
		return error_set(error, QRET_ERR_OPTION, false,
		                 "see \"Connection Strings\" in PostgreSQL's manual",
		                 "the conninfo cannot be parsed");
	}
	target = calloc(1, sizeof(*target));
	if (target == NULL)
		goto end;
	target->options = PQconndefaults();
	if (target->options == NULL || !overlay(target->options, own))
		goto end;
	rc = check_values(target->options, error);
	if (rc == QRET_DONE)
		rc = find_password_file(target);
	if (rc == QRET_DONE)
		rc = check_password_file(target, error);
	/*
	 * A service's values win over environment and defaults, and only libpq reads them: its
	 * hosts are tried as one.
	 */
	if (value_of(own, "service")[0] != '\0') {
		PQconninfoOption *whole = target->options;

		target->options = own;
		own = whole;
	}
	if (rc == QRET_DONE)
		rc = count_hosts(target, error);
	if (rc == QRET_DONE) {
		*ret_target = target;
		target = NULL;
	}
end:
	PQconninfoFree(own);
	target_free(target);
	if (rc == QRET_ERR_NOMEM)
		error_set(error, rc, true, NULL, "out of memory");
	return rc;
}

void target_free(struct target *target)
{
	if (target == NULL)
		return;
	PQconninfoFree(target->options);
	free(target->password_file);
	free(target);
}

uint32_t target_hosts(const struct target *target)
{
	return target->hosts;
}

/* prefer-standby makes two passes over the hosts; every other wish makes one. */
static bool prefers_standby(const struct target *target)
{
	return strcmp(value_of(target->options, "target_session_attrs"), "prefer-standby") == 0;
}

static uint32_t attempts(const struct target *target)
{
	return target->hosts * (prefers_standby(target) ? 2 : 1);
}

struct keywords {
	const char *names[KEYWORDS_MAX + 1];
	const char *values[KEYWORDS_MAX + 1];
	int count;
};

static void set_keyword(struct keywords *keywords, const char *name, const char *value)
{
	for (int i = 0; i < keywords->count; i++) {
		if (strcmp(keywords->names[i], name) == 0) {
			keywords->values[i] = value;
			return;
		}
	}
	if (keywords->count < KEYWORDS_MAX) {
		keywords->names[keywords->count] = name;
		keywords->values[keywords->count++] = value;
	}
}

static void set_default(struct keywords *keywords, const struct target *target, const char *name,
                        const char *value)
{
	if (value_of(target->options, name)[0] == '\0')
		set_keyword(keywords, name, value);
}

/* Starts on host `attempt`. */
static void start(struct connect *connect)
{
	const struct target *target = connect->target;
	uint32_t host = connect->attempt % target->hosts;
	char hosts[1024], addresses[1024], ports[64], seconds[24], milliseconds[24];
	struct keywords keywords = { 0 };

	for (const PQconninfoOption *option = target->options; option->keyword != NULL; option++) {
		if (option->val != NULL && option->val[0] != '\0')
			set_keyword(&keywords, option->keyword, option->val);
	}
	list_part(value_of(target->options, "host"), host, hosts, sizeof(hosts));
	list_part(value_of(target->options, "hostaddr"), host, addresses, sizeof(addresses));
	list_part(value_of(target->options, "port"), host, ports, sizeof(ports));
	if (target->hosts > 1) {
		set_keyword(&keywords, "host", hosts);
		set_keyword(&keywords, "hostaddr", addresses);
		set_keyword(&keywords, "port", ports);
	}
	if (prefers_standby(target))
		set_keyword(&keywords, "target_session_attrs",
		            connect->attempt < target->hosts ? "standby" : "any");
	set_keyword(&keywords, "client_encoding", "UTF8");
	set_default(&keywords, target, "fallback_application_name", "libqretention");
	if (connect->limits.idle_limit_ms > 0) {
		int64_t probe = connect->limits.idle_limit_ms / 4000;

		snprintf(seconds, sizeof(seconds), "%lld", (long long)(probe < 1 ? 1 : probe));
		snprintf(milliseconds, sizeof(milliseconds), "%lld",
		         (long long)connect->limits.idle_limit_ms);
		set_default(&keywords, target, "keepalives_idle", seconds);
		set_default(&keywords, target, "keepalives_interval", seconds);
		set_default(&keywords, target, "keepalives_count", "3");
		set_default(&keywords, target, "tcp_user_timeout", milliseconds);
	}
	connect->connection = PQconnectStartParams(keywords.names, keywords.values, 0);
	connect->events = QRET_POLL_WRITE;
	connect->deadline_us = clock_after_ms(qret_now_us(), connect->limits.connect_timeout_ms);
	if (connect->connection == NULL)
		return;
	/*
	 * The only way to the SQLSTATE of a refused connect in this libpq: have it in the
	 * message.
	 */
	PQsetErrorVerbosity(connect->connection, PQERRORS_VERBOSE);
	/* A server may say something before it lets us in, and libpq would print it. */
	if (connect->notice != NULL)
		PQsetNoticeReceiver(connect->connection, connect->notice, connect->notice_data);
}

/* False where there is no host left, or none that may be tried: it is the same file for all. */
static bool try_host(struct connect *connect)
{
	if (connect->attempt >= attempts(connect->target))
		return false;
	if (check_password_file(connect->target, &connect->last) != QRET_DONE) {
		connect->attempt = attempts(connect->target);
		return false;
	}
	start(connect);
	return true;
}

void connect_begin(struct connect *connect, const struct target *target,
                   struct connect_limits limits)
{
	memset(connect, 0, sizeof(*connect));
	connect->target = target;
	connect->limits = limits;
	try_host(connect);
}

void connect_abandon(struct connect *connect)
{
	if (connect->connection != NULL)
		PQfinish(connect->connection);
	connect->connection = NULL;
}

/* Finds "FATAL:  28P01: text" in libpq's message; severity may be in any language. */
static const char *find_sqlstate(const char *message, char *ret_sqlstate)
{
	for (const char *at = strstr(message, ":  "); at != NULL; at = strstr(at + 1, ":  ")) {
		const char *code = at + 3;

		if (strspn(code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 && code[5] == ':' &&
		    code[6] == ' ') {
			memcpy(ret_sqlstate, code, 5);
			ret_sqlstate[5] = '\0';
			return code + 7;
		}
	}
	return NULL;
}

/* Keeps the first line, without the file and line of the server's source that verbosity adds. */
static void record_refusal(struct connect *connect)
{
	char sqlstate[6] = "";
	char text[sizeof(connect->last.message)];
	const char *message = connect->connection == NULL ? "out of memory"
	                                                  : PQerrorMessage(connect->connection);
	const char *server = find_sqlstate(message, sqlstate);

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(server != NULL ? server : message, "\n"),
	         server != NULL ? server : message);
	/* What a server refuses of the options it was sent, it repeats: that is not passed on. */
	if (server != NULL && (strncmp(sqlstate, "22", 2) == 0 || strcmp(sqlstate, "42704") == 0))
		snprintf(text, sizeof(text), "the server refuses a startup option");
	if (server != NULL)
		error_set_server(&connect->last, sqlstate, text, NULL);
	else if (connect->connection != NULL && PQconnectionNeedsPassword(connect->connection))
		error_set(&connect->last, QRET_ERR_CONNECTION, false,
		          "give a password in the conninfo or a password file", "%s", text);
	else
		error_set(&connect->last, QRET_ERR_CONNECTION, true, NULL, "%s", text);
	/*
	 * A server that refuses a connect has refused a connection, whatever its SQLSTATE means
	 * later on.
	 */
	connect->last.code = QRET_ERR_CONNECTION;
}

static PostgresPollingStatusType advance(struct connect *connect)
{
	if (connect->connection == NULL || PQstatus(connect->connection) == CONNECTION_BAD)
		return PGRES_POLLING_FAILED;
	struct pollfd ready = { PQsocket(connect->connection),
		                connect->events == QRET_POLL_READ ? POLLIN : POLLOUT, 0 };
	int polled = poll(&ready, 1, 0);

	/*
	 * PQconnectPoll believes its caller that the socket is ready, so ask; EINTR is "not
	 * yet".
	 */
	if (polled <= 0)
		return connect->events == QRET_POLL_READ ? PGRES_POLLING_READING
		                                         : PGRES_POLLING_WRITING;
	return PQconnectPoll(connect->connection);
}

/* Gives this host up; false if it was the last. */
static bool next_host(struct connect *connect)
{
	connect_abandon(connect);
	connect->attempt++;
	return try_host(connect);
}

int connect_process(struct connect *connect, struct pg_conn **ret_connection, struct error *error)
{
	if (connect->attempt >= attempts(connect->target)) {
		*error = connect->last;
		return error->code;
	}
	for (;;) {
		switch (advance(connect)) {
		case PGRES_POLLING_OK:
			PQsetErrorVerbosity(connect->connection, PQERRORS_DEFAULT);
			*ret_connection = connect->connection;
			connect->connection = NULL;
			return QRET_DONE;
		case PGRES_POLLING_READING:
			connect->events = QRET_POLL_READ;
			break;
		case PGRES_POLLING_WRITING:
			connect->events = QRET_POLL_WRITE;
			break;
		default:
			record_refusal(connect);
			if (!next_host(connect)) {
				*error = connect->last;
				return error->code;
			}
			continue;
		}
		if (qret_now_us() < connect->deadline_us)
			return QRET_WAIT;
		error_set(&connect->last, QRET_ERR_TIMEOUT, true, "see option connect_timeout_ms",
		          "no connection to host %s within %lld ms", PQhost(connect->connection),
		          (long long)connect->limits.connect_timeout_ms);
		if (!next_host(connect)) {
			*error = connect->last;
			return error->code;
		}
	}
}
