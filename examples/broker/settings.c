/* SPDX-License-Identifier: MIT */
/* The broker's command line. */
#include "broker.h"
#include "text.h"

#include <stdlib.h>

#define NUMBER(long_name, field, least, most, text)                                           \
	{                                                                                     \
		.name = long_name, .value_name = "N", .help = text, .kind = ARGUMENT_INTEGER, \
		.offset = offsetof(struct settings, field), .minimum = least, .maximum = most \
	}
#define TEXT(short_name, long_name, field, value, text)                                     \
	{                                                                                   \
		.letter = short_name, .name = long_name, .value_name = value, .help = text, \
		.kind = ARGUMENT_TEXT, .offset = offsetof(struct settings, field)           \
	}
#define LIST(short_name, long_name, field, value, text)                                     \
	{                                                                                   \
		.letter = short_name, .name = long_name, .value_name = value, .help = text, \
		.kind = ARGUMENT_LIST, .offset = offsetof(struct settings, field)           \
	}
#define FLAG(short_name, long_name, field, text)                                              \
	{                                                                                     \
		.letter = short_name, .name = long_name, .help = text, .kind = ARGUMENT_FLAG, \
		.offset = offsetof(struct settings, field)                                    \
	}

static const struct argument arguments[] = {
	TEXT('d', "dsn", dsn, "CONNINFO", "connection string; without it the PG* environment"),
	TEXT(0, "log-schema", log_schema, "NAME", "schema of the broker's tables (queen)"),
	TEXT(0, "broker-schema", broker_schema, "NAME",
	     "schema for this program's own SQL functions (qretention_broker)"),
	LIST(0, "queue", queues, "SPEC",
	     "NAME[*COPIES][,KEY=VALUE...]; keys: partitions, retention, completed, max_wait, dedup "
	     "(seconds; 0 is off), groups=NAME:fast+NAME:slow+NAME:absent. May be given again"),
	LIST(0, "partition", partitions, "UUID", "push to this partition too; may be given again"),
	NUMBER("rate", rate, 0, 1000000,
	       "pushes a second, all pushers together; 0: no limit (100)"),
	NUMBER("pushers", pushers, 0, 64, "connections that push (1)"),
	NUMBER("consumers", consumers, 0, 64, "connections that pop and ack (1)"),
	NUMBER("messages", messages, 1, 10000, "messages a push (10)"),
	NUMBER("payload", payload, 0, 1000000, "bytes a message (100)"),
	NUMBER("spread", spread, 1, 1000, "partitions a push goes to, in one transaction (1)"),
	NUMBER("duplicates", duplicates, 0, 100,
	       "percent of pushes that repeat the one before (0)"),
	NUMBER("dead-letters", dead_letters, 0, 100,
	       "percent of a slow group's batches that lose a message to the dead letters (0)"),
	NUMBER("duration", duration, 1, 86400 * 365, "end after N seconds"),
	NUMBER("pushes", pushes, 0, INT64_MAX,
	       "push N times, and end unless --duration says otherwise"),
	NUMBER("seed", seed, 0, INT64_MAX, "seed of all that is random (1)"),
	FLAG(0, "drain", drain, "end only once every group has read its share; needs --pushes"),
	FLAG('r', "retention", retention, "run retention inside this process"),
	LIST('s', "set", options, "NAME=VALUE", "an option of the library, for --retention"),
	FLAG('j', "json", json, "the result as a JSON object"),
	FLAG('v', "verbose", verbose, "the library's log lines on stderr"),
	FLAG('h', "help", help, "this text"),
	{ 0 },
};

static void print_help(void)
{
	fputs("usage: broker --queue SPEC [OPTION...]\n\n", stdout);
	text_wrap(
		stdout,
		"A small message broker on a segment log in PostgreSQL, and a load generator: pushes, "
		"pops and acks through SQL, runs retention in the same loop with --retention, and "
		"prints push latencies when it ends (SIGTERM or SIGINT, --duration, --drain).",
		0, 0);
	fputs("\noptions:\n", stdout);
	arguments_help(stdout, arguments);
}

static int refuse(const char *message)
{
	fprintf(stderr, "broker: %s\ntry: broker --help\n", message);
	return 2;
}

/* Nothing would ever end, or nothing would ever happen. */
static const char *complaint(const struct settings *settings, const struct argument_list *words)
{
	if (words->count > 0)
		return "no words are expected beside the options";
	if (settings->queues.count == 0 && settings->partitions.count == 0 && !settings->retention)
		return "name a queue, or a partition, or run --retention";
	if (settings->drain && !settings->pushes.given)
		return "--drain needs --pushes";
	if (settings->options.count > 0 && !settings->retention)
		return "--set needs --retention";
	return NULL;
}

int settings_read(int argc, char **argv, struct settings *ret_settings)
{
	struct argument_group group = { arguments, ret_settings };
	struct argument_list words = { 0 };
	char error[ARGUMENT_ERROR_SIZE];
	const char *message;

	*ret_settings = (struct settings){
		.log_schema = "queen",
		.broker_schema = "qretention_broker",
		.rate = { 100, 0 },
		.pushers = { 1, 0 },
		.consumers = { 1, 0 },
		.messages = { 10, 0 },
		.payload = { 100, 0 },
		.spread = { 1, 0 },
		.seed = { 1, 0 },
	};
	if (arguments_parse(argc, argv, &group, 1, &words, error) < 0)
		return refuse(error);
	if (ret_settings->help) {
		print_help();
		return 0;
	}
	message = complaint(ret_settings, &words);
	free(words.items);
	return message ? refuse(message) : -1;
}

void settings_free(struct settings *settings)
{
	struct argument_group group = { arguments, settings };
	struct argument_list none = { 0 };

	arguments_free(&group, 1, &none);
}
