/* SPDX-License-Identifier: MIT */
/*
 * Where to connect to: a conninfo, checked before libpq sees it, over the environment, and taken
 * apart into its hosts. Reads files and environment; contacts nobody.
 */
#include "target.h"

#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "qretention.h"

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

int target_check_password_file(const struct target *target, struct error *error)
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
		rc = target_check_password_file(target, error);
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

uint32_t target_attempts(const struct target *target)
{
	return target->hosts * (prefers_standby(target) ? 2 : 1);
}

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

void target_keywords(const struct target *target, uint32_t attempt, int64_t idle_limit_ms,
                     struct keywords *keywords)
{
	uint32_t host = attempt % target->hosts;

	memset(keywords, 0, sizeof(*keywords));
	for (const PQconninfoOption *option = target->options; option->keyword != NULL; option++) {
		if (option->val != NULL && option->val[0] != '\0')
			set_keyword(keywords, option->keyword, option->val);
	}
	list_part(value_of(target->options, "host"), host, keywords->host, sizeof(keywords->host));
	list_part(value_of(target->options, "hostaddr"), host, keywords->address,
	          sizeof(keywords->address));
	list_part(value_of(target->options, "port"), host, keywords->port, sizeof(keywords->port));
	if (target->hosts > 1) {
		set_keyword(keywords, "host", keywords->host);
		set_keyword(keywords, "hostaddr", keywords->address);
		set_keyword(keywords, "port", keywords->port);
	}
	if (prefers_standby(target))
		set_keyword(keywords, "target_session_attrs",
		            attempt < target->hosts ? "standby" : "any");
	set_keyword(keywords, "client_encoding", "UTF8");
	set_default(keywords, target, "fallback_application_name", "libqretention");
	if (idle_limit_ms > 0) {
		int64_t probe = idle_limit_ms / 4000;

		snprintf(keywords->seconds, sizeof(keywords->seconds), "%lld",
		         (long long)(probe < 1 ? 1 : probe));
		snprintf(keywords->milliseconds, sizeof(keywords->milliseconds), "%lld",
		         (long long)idle_limit_ms);
		set_default(keywords, target, "keepalives_idle", keywords->seconds);
		set_default(keywords, target, "keepalives_interval", keywords->seconds);
		set_default(keywords, target, "keepalives_count", "3");
		set_default(keywords, target, "tcp_user_timeout", keywords->milliseconds);
	}
}
