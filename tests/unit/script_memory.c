/* SPDX-License-Identifier: MIT */
#include "script_memory.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PLACES 65536 /* a power of two, far more than is ever held */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *block);

static void *held[PLACES];
static long count, calls, fail_at;
static bool tracking, paused, onwards, failed;

static size_t home(const void *block)
{
	return ((uintptr_t)block >> 4) * 2654435761u & (PLACES - 1);
}

static void hold(void *block)
{
	size_t at = home(block);

	if (!tracking || block == NULL)
		return;
	while (held[at] != NULL)
		at = (at + 1) & (PLACES - 1);
	held[at] = block;
	count++;
}

/* Takes it out and moves what was displaced back. */
static void let_go(const void *block)
{
	size_t at = home(block);

	while (held[at] != NULL && held[at] != block)
		at = (at + 1) & (PLACES - 1);
	if (held[at] == NULL)
		return;
	held[at] = NULL;
	count--;
	for (at = (at + 1) & (PLACES - 1); held[at] != NULL; at = (at + 1) & (PLACES - 1)) {
		void *moved = held[at];

		held[at] = NULL;
		count--;
		hold(moved);
	}
}

static bool fails(void)
{
	if (!tracking || fail_at == 0)
		return false;
	calls++;
	if (calls == fail_at || (onwards && calls > fail_at))
		failed = true;
	return calls == fail_at || (onwards && calls > fail_at);
}

void memory_begin(long n, bool all)
{
	memset(held, 0, sizeof(held));
	count = calls = 0;
	fail_at = n;
	onwards = all;
	failed = false;
	tracking = true;
}

long memory_end(void)
{
	tracking = false;
	return count;
}

void memory_pause(void)
{
	paused = tracking;
	tracking = false;
}

void memory_resume(void)
{
	tracking = paused;
}

bool memory_failed(void)
{
	return failed;
}

void *__wrap_malloc(size_t size)
{
	void *block = fails() ? NULL : __real_malloc(size);

	hold(block);
	return block;
}

void *__wrap_calloc(size_t n, size_t size)
{
	void *block = fails() ? NULL : __real_calloc(n, size);

	hold(block);
	return block;
}

void *__wrap_realloc(void *block, size_t size)
{
	void *moved = fails() ? NULL : __real_realloc(block, size);

	if (moved != NULL) {
		if (block != NULL && tracking)
			let_go(block);
		hold(moved);
	}
	return moved;
}

char *__wrap_strdup(const char *text)
{
	char *copy = __wrap_malloc(strlen(text) + 1);

	return copy == NULL ? NULL : strcpy(copy, text);
}

void __wrap_free(void *block)
{
	if (tracking && block != NULL)
		let_go(block);
	__real_free(block);
}
