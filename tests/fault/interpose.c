/* SPDX-License-Identifier: MIT */
/*
 * Stands in front of libpq (LD_PRELOAD): at the n-th call on a connection it shuts the socket
 * down first, or has the call fail without libpq's help. Counts the calls.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <sys/socket.h>

struct pg_conn;
struct pg_result;
typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;

enum { OFF, SHUT, FAIL };

static int mode, target, calls;
static const char *struck;

void interpose_arm(int how, int nth)
{
	mode = how;
	target = nth;
	calls = 0;
	struck = NULL;
}

int interpose_calls(void)
{
	return calls;
}

/* The name of the call that was struck, or "". */
const char *interpose_struck(void)
{
	return struck == NULL ? "" : struck;
}

/* By handle: a program may have loaded libpq where RTLD_NEXT does not look. */
static void *real(const char *name)
{
	static void *libpq;

	if (libpq == NULL)
		libpq = dlopen("libpq.so.5", RTLD_LAZY);
	return dlsym(libpq, name);
}

/* 1 if this call is to fail. */
static int strike(PGconn *connection, const char *name)
{
	int (*get_socket)(const PGconn *) = (int (*)(const PGconn *))real("PQsocket");

	if (++calls != target || mode == OFF)
		return 0;
	struck = name;
	if (mode == FAIL)
		return 1;
	if (connection != NULL && get_socket(connection) >= 0)
		shutdown(get_socket(connection), SHUT_RDWR);
	return 0;
}

#define AROUND(type, name, failure, parameters, arguments)         \
	type name parameters                                       \
	{                                                          \
		if (strike(connection, #name))                     \
			return failure;                            \
		return ((type(*) parameters)real(#name))arguments; \
	}

AROUND(int, PQconnectPoll, 0, (PGconn * connection), (connection))
AROUND(int, PQconsumeInput, 0, (PGconn * connection), (connection))
AROUND(int, PQflush, -1, (PGconn * connection), (connection))
AROUND(int, PQpipelineSync, 0, (PGconn * connection), (connection))
AROUND(int, PQenterPipelineMode, 0, (PGconn * connection), (connection))
AROUND(int, PQexitPipelineMode, 0, (PGconn * connection), (connection))
AROUND(int, PQsetnonblocking, -1, (PGconn * connection, int wanted), (connection, wanted))
AROUND(PGresult *, PQgetResult, NULL, (PGconn * connection), (connection))
AROUND(int, PQsendQueryParams, 0,
       (PGconn * connection, const char *text, int count, const unsigned *types,
        const char *const *values, const int *lengths, const int *formats, int format),
       (connection, text, count, types, values, lengths, formats, format))
AROUND(int, PQsendPrepare, 0,
       (PGconn * connection, const char *name, const char *text, int count, const unsigned *types),
       (connection, name, text, count, types))
AROUND(int, PQsendQueryPrepared, 0,
       (PGconn * connection, const char *name, int count, const char *const *values,
        const int *lengths, const int *formats, int format),
       (connection, name, count, values, lengths, formats, format))

PGconn *PQconnectStartParams(const char *const *keywords, const char *const *values, int expand)
{
	PGconn *(*start)(const char *const *, const char *const *, int) =
		(PGconn * (*)(const char *const *, const char *const *, int))
			real("PQconnectStartParams");
	PGconn *connection;

	if (mode == FAIL && calls + 1 == target) {
		calls++;
		struck = "PQconnectStartParams";
		return NULL;
	}
	connection = start(keywords, values, expand);
	strike(connection, "PQconnectStartParams");
	return connection;
}
