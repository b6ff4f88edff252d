/* SPDX-License-Identifier: MIT */
/*
 * The example broker: one process, one thread, one poll(2). Clients push and pop through SQL on
 * their own non-blocking connections; retention runs inside the same loop, through the library's
 * non-blocking calls. One section of prototypes for each file.
 */
#ifndef EXAMPLE_BROKER_H
#define EXAMPLE_BROKER_H

#include <libpq-fe.h>
#include <poll.h>
#include <qretention.h>

#include "arguments.h"
#include "json.h"

/* ---- settings.c: the command line ------------------------------------------------------------ */

struct settings {
	const char *dsn;
	const char *log_schema;
	const char *broker_schema;
	struct argument_list queues;     /* specs, see queue_spec.c */
	struct argument_list partitions; /* ids to push to, beside those of the queues */
	struct argument_list options;    /* NAME=VALUE, of the library */
	struct argument_integer rate;
	struct argument_integer pushers;
	struct argument_integer consumers;
	struct argument_integer messages;
	struct argument_integer payload;
	struct argument_integer spread;
	struct argument_integer duplicates;
	struct argument_integer dead_letters;
	struct argument_integer duration;
	struct argument_integer pushes;
	struct argument_integer seed;
	int drain;
	int retention;
	int json;
	int verbose;
	int help;
};

/* Reads the command line over the defaults. Returns -1 to go on, or an exit code. */
int settings_read(int argc, char **argv, struct settings *ret_settings);
void settings_free(struct settings *settings);

/* ---- queue_spec.c: what `--queue` says ------------------------------------------------------- */

#define NAME_SIZE  64
#define GROUP_MOST 4

enum group_mode {
	GROUP_FAST,  /* reads everything, acks as it pops */
	GROUP_SLOW,  /* leases, and acks half of what there is */
	GROUP_ABSENT /* registered once, and was never seen again */
};

struct group {
	char name[NAME_SIZE];
	enum group_mode mode;
};

struct queue_spec {
	char name[NAME_SIZE];
	int copies; /* name*N: name-1 .. name-N; 0: the name as it is */
	int partitions;
	int retention, completed, max_wait, dedup; /* seconds */
	struct group groups[GROUP_MOST];
	int group_count;
};

/* Returns 0, or -1 with a sentence in `ret_error`. */
int queue_spec_parse(const char *text, struct queue_spec *ret_spec,
                     char ret_error[ARGUMENT_ERROR_SIZE]);

/* ---- provision.c: schema, queues and partitions, before the serving begins ------------------- */

struct partition {
	char id[40]; /* changes when retention deleted the partition and a push made it anew */
	char queue[NAME_SIZE + 16];
	char name[NAME_SIZE];          /* "" for one that --partition named by its id */
	const struct queue_spec *spec; /* NULL likewise */
	int64_t pushed;                /* segments, by this process */
};

/* Calls of our SQL functions, as statements with the schema's name in them. */
enum broker_call {
	CALL_PUSH,
	CALL_PUSH_MANY,
	CALL_PROVISION,
	CALL_POP,
	CALL_ACK,
	CALL_DEAD_LETTER,
	CALL_SEEK,
	CALL_COUNT
};

struct catalogue {
	struct partition *partitions;
	size_t count;
	struct queue_spec *specs;
	size_t spec_count;
	char *calls[CALL_COUNT];
};

/* Returns 0, or -1 with a message on stderr. */
int catalogue_prepare(const struct settings *settings, struct catalogue *ret_catalogue);
void catalogue_free(struct catalogue *catalogue);

/* ---- client.c: a non-blocking connection, one statement at a time ---------------------------- */

enum client_state { CLIENT_CLOSED, CLIENT_CONNECTING, CLIENT_IDLE, CLIENT_SENDING, CLIENT_WAITING };

/* An answer. The result is the client's; NULL if the connection was lost before it came. */
typedef void (*client_answer_fn)(void *owner, const PGresult *result);

struct client {
	PGconn *connection;
	enum client_state state;
	short events;     /* what poll should wait for */
	int64_t retry_us; /* when to connect again, while closed */
	const char *dsn;
	client_answer_fn answer;
	void *owner;
	PGresult *result; /* collected, and handed over once the statement is complete */
};

/* A parameter: text unless a length says that it is binary. */
struct client_value {
	const char *data;
	int binary_length;
};

#define CLIENT_VALUES_MOST 8

void client_begin(struct client *client, const char *dsn, client_answer_fn answer, void *owner);
void client_end(struct client *client);
int client_is_idle(const struct client *client);
/* Sends one statement; the answer comes through the callback. Returns 0, or -1 if it cannot. */
int client_send(struct client *client, const char *sql, const struct client_value *values,
                int value_count);
/* Fills a poll slot (fd -1 if there is nothing to wait for), and says when it wants to be called. */
int64_t client_wants(const struct client *client, struct pollfd *ret_slot);
void client_move(struct client *client, short revents);

/* ---- histogram.c ----------------------------------------------------------------------------- */

#define HISTOGRAM_BUCKETS 1024

/* Latencies in microseconds, in buckets at most 3 % wide. */
struct histogram {
	uint64_t counts[HISTOGRAM_BUCKETS];
	uint64_t total;
	int64_t sum_us, most_us;
};

void histogram_add(struct histogram *histogram, int64_t us);
void histogram_merge(struct histogram *into, const struct histogram *from);
/* The latency that `share` (0 to 1) of them do not exceed; 0 if there are none. */
int64_t histogram_quantile(const struct histogram *histogram, double share);
void histogram_json(struct json *json, const char *key, const struct histogram *histogram);

/* ---- random numbers, the same for one seed --------------------------------------------------- */

struct random {
	uint64_t state;
};

static inline uint64_t random_next(struct random *random)
{
	random->state ^= random->state << 13;
	random->state ^= random->state >> 7;
	random->state ^= random->state << 17;
	return random->state;
}

static inline uint64_t random_below(struct random *random, uint64_t bound)
{
	return bound ? random_next(random) % bound : 0;
}

/* ---- pusher.c, consumer.c -------------------------------------------------------------------- */

struct host;

struct pusher {
	struct host *host;
	struct client client;
	struct random random;
	char *hashes, *blob, *list;
	size_t target;       /* the partition being pushed to, or the first of several */
	int64_t provisioned; /* of the partitions of a refused push, those made anew so far */
	int has_push;        /* one is under way: in flight, or to be sent again */
	int refused;         /* its partition was gone */
	int beside_cycle;    /* retention was at work when it was sent */
	int64_t due_us, sent_us;
	int64_t next_us;
};

int pusher_begin(struct pusher *pusher, struct host *host, int number);
void pusher_end(struct pusher *pusher);
/* Sends the next push if one is due. Returns when the next will be. */
int64_t pusher_tend(struct pusher *pusher, int64_t now_us);

/* One group reading one partition. */
struct subscription {
	size_t partition;
	const struct group *group;
	int64_t batches; /* popped so far by this process */
	int registered;  /* an absent group's one sign of life is done */
	int idle;        /* the last look found nothing; a slow group counts its share as all */
};

struct consumer {
	struct host *host;
	struct client client;
	struct random random;
	char worker[24];
	struct subscription *subscriptions;
	size_t count, current;
	size_t found_nothing;   /* looks in a row that did */
	enum broker_call asked; /* what is in flight */
	int holds_batch;        /* leased, neither acked nor given up */
	char first_offset[24];
	int64_t next_us;
};

int consumer_begin(struct consumer *consumer, struct host *host, int number);
void consumer_end(struct consumer *consumer);
int64_t consumer_tend(struct consumer *consumer, int64_t now_us);
/* Every subscription is idle: nothing to read for anybody. */
int consumer_is_drained(const struct consumer *consumer);

/* ---- retention.c: the library inside the loop ------------------------------------------------ */

struct retention {
	struct qret_ctx *ctx; /* NULL: this process runs no retention */
	int in_cycle;
	int stopping; /* a stop was asked for: no further cycle begins */
	int next_rc;  /* what the last process call said */
	int64_t cycles, failed;
	struct qret_cycle_report totals;
	int64_t longest_us;
};

int retention_begin(struct retention *retention, const struct settings *settings);
void retention_end(struct retention *retention);
/* Adds the library's descriptors to the slots; lowers *deadline_us to when it wants to be called. */
size_t retention_wants(struct retention *retention, struct pollfd *slots, size_t room,
                       int64_t *deadline_us);
/* Begins a cycle when one is due and moves the running one by one call. */
void retention_tend(struct retention *retention);
void retention_stop(struct retention *retention);

/* ---- host.c: the loop ------------------------------------------------------------------------ */

struct counts {
	int64_t pushes, messages, duplicates, late, push_errors, reprovisioned;
	int64_t pops, acks, dead_letters, lost_leases, consumer_errors;
};

struct host {
	const struct settings *settings;
	struct catalogue catalogue;
	struct retention retention;
	struct pusher *pushers;
	struct consumer *consumers;
	size_t pusher_count, consumer_count;
	struct counts counts;
	struct histogram beside_cycle, without_cycle; /* send to answer */
	struct histogram from_due; /* from when the push was due: waiting counts */
	int64_t begin_us, end_us;  /* end_us INT64_MAX: no time limit */
	int64_t pushes_begun;
	int64_t silent_until_us; /* complaints before that are swallowed */
	int ending;              /* no new pushes */
};

int host_begin(struct host *host, const struct settings *settings);
void host_serve(struct host *host);
void host_end(struct host *host);
/* From a signal handler: ends the loop between two statements. */
void host_stop(void);
/* What a statement's error was, once a second at the most, on stderr. */
void host_complain(struct host *host, const char *doing, const PGresult *result);

/* ---- result.c -------------------------------------------------------------------------------- */

void result_print(const struct host *host);

#endif
