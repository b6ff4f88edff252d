/* SPDX-License-Identifier: MIT */
/*
 * A libpq that follows a script, put in the place of the real one when a test is linked. It has
 * connections, pipelines and time of its own: nothing is slept, no socket is opened, and what no real
 * server can be made to do at will happens at the very call where a test wants it.
 *
 * A wrong statement or parameter fails with its place in the script. So do a result that is never cleared, or
 * cleared twice, any use of a finished connection, a sleep that nothing would end, and a loop that spins.
 */
#ifndef QRET_TESTS_SCRIPT_PQ_H
#define QRET_TESTS_SCRIPT_PQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Values, in answers and decoded parameters, separated by spaces; rows of an answer by '/':
 *   -  NULL    t f  bool    12  integer (int8 in answers)    @12  timestamp, unix microseconds
 *   #7 uuid whose last bytes are this number    'x  text     {#1,#2}  uuid[]
 * Instead of rows an answer may be "ERROR sqlstate message", after which the rest of the group is skipped,
 * or "FATAL sqlstate message", after which the connection is gone.
 */

#define SCRIPT_NEVER INT32_MAX

enum {
	SCRIPT_TWICE = 1,   /* the error is told twice */
	SCRIPT_DIE = 2,     /* the connection is gone before the answer */
	SCRIPT_SILENT = 4,  /* from here on libpq has nothing to say, for ever */
	SCRIPT_NOTICE = 8,  /* a notice comes with it */
	SCRIPT_CHATTER = 16 /* results without end, and never the sync */
};

struct script_entry {
	const char *
		statement; /* a file of sql/client without its suffix; "begin", "commit"; "other" */
	const char *parameters; /* NULL: any */
	const char *answer;
	int32_t delay_ms;
	unsigned flags;
	int connection; /* 1: the first that was opened; 0: any */
};

/* What a model server is asked, and what it may have happen. */
struct script_call {
	int connection; /* as above */
	const char *statement, *parameters;
	const char *text; /* as sent */
	long queued;      /* which call of libpq it was */
	int32_t delay_ms;
	unsigned flags;
};

typedef const char *(*script_server)(struct script_call *call);

/* Forgets everything; the clock goes on. */
void script_begin(void);

/* Statements must come in this order. */
void script_expect(const struct script_entry *entries, size_t count);

/* Or: a model answers whatever comes. */
void script_serve(script_server server);

/* An option of the context's that changes how its statements read. */
void script_option(const char *name, const char *value);

/* Checks that the script is used up, every result cleared, every connection of ours finished. */
void script_end(void);

/* A connection as a host would have one, open and idle; not the library's to finish. */
struct pg_conn *script_host_connection(void);

/* How the connections that are opened next behave, by order of opening: NULL "ok", "deaf", or a message that refuses. */
void script_connects(const char *const *behaviours, size_t count);

/* What connection number n was opened with. */
const char *script_keyword(int connection, const char *keyword);

struct script_knobs {
	long die_at; /* the connection is gone when libpq is called for the n-th time; 0: never */
	int die_connection; /* counting only calls on this one; 0: on all */
	bool die_late;      /* writes into the dead connection seem to work */
	long refuse_at;     /* the n-th call that can fail does, for lack of memory */
	long stop_at;       /* at the n-th call of libpq, or sleep, the stop function runs */
	void (*stop)(void);
	int flush_stalls;       /* so many flushes leave output behind */
	void (*on_sleep)(void); /* before time passes */
};
extern struct script_knobs script_knobs;

/* What happened. */
long script_calls(void);                /* calls of libpq */
bool script_died(void);                 /* whether die_at, refuse_at or stop_at was reached */
int script_opened(void);                /* connections opened so far */
int script_open(void);                  /* of them, not finished */
int script_sent(const char *statement); /* times it reached the server */
int64_t script_now_us(void);
void script_pass_ms(int64_t ms);

/* ---- Between the parts of the script ----------------------------------------------------------- */

/* Gives the answer to one statement. */
void script_answer(struct script_call *call, const char **ret_answer);
const char *script_statement_name(const char *text);
void script_decode_parameters(char *target, size_t capacity, int count, const unsigned int *types,
                              const char *const *values, const int *lengths);
void script_server_reset(void);
void script_server_check(void);

/* Readiness and the next change of a descriptor of ours. */
#define SCRIPT_FD_BASE 10000
bool script_fd_ready(int fd, bool for_write);
int64_t script_fd_next_us(int fd);
void script_clock_reset(void);
void script_tick(void); /* counts against spinning */

#endif
