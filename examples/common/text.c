/* SPDX-License-Identifier: MIT */
/* Numbers, durations and times as people read them, and text wrapped to a width. */
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MICROSECONDS 1000000
#define MINUTE       (60 * (int64_t)MICROSECONDS)
#define HOUR         (60 * MINUTE)
#define DAY          (24 * HOUR)

const char *text_count(char buffer[TEXT_SMALL], int64_t count)
{
	char digits[TEXT_SMALL];
	int length = snprintf(digits, sizeof(digits), "%" PRId64, count);
	int sign = digits[0] == '-';
	int used = 0;

	for (int i = 0; i < length; i++) {
		if (i > sign && (length - i) % 3 == 0)
			buffer[used++] = ',';
		buffer[used++] = digits[i];
	}
	buffer[used] = '\0';
	return buffer;
}

static void two_units(char *buffer, int64_t large, const char *large_unit, int64_t small,
                      const char *small_unit)
{
	if (small == 0)
		snprintf(buffer, TEXT_SMALL, "%" PRId64 " %s", large, large_unit);
	else
		snprintf(buffer, TEXT_SMALL, "%" PRId64 " %s %" PRId64 " %s", large, large_unit,
		         small, small_unit);
}

const char *text_duration(char buffer[TEXT_SMALL], int64_t us)
{
	if (us < 0)
		us = 0;
	/* What would be rounded up to a whole second or minute is one. */
	if (us < MICROSECONDS && us >= MICROSECONDS - 500)
		us = MICROSECONDS;
	if (us < MINUTE && us >= MINUTE - MICROSECONDS / 20)
		us = MINUTE;
	if (us < MICROSECONDS)
		snprintf(buffer, TEXT_SMALL, "%" PRId64 " ms", (us + 500) / 1000);
	else if (us < MINUTE)
		snprintf(buffer, TEXT_SMALL, "%.1f s", (double)us / MICROSECONDS);
	else if (us < HOUR)
		two_units(buffer, us / MINUTE, "min", us % MINUTE / MICROSECONDS, "s");
	else if (us < DAY)
		two_units(buffer, us / HOUR, "h", us % HOUR / MINUTE, "min");
	else
		two_units(buffer, us / DAY, "d", us < 1000 * DAY ? us % DAY / HOUR : 0, "h");
	return buffer;
}

const char *text_time(char buffer[TEXT_SMALL], int64_t us)
{
	int64_t seconds = us / MICROSECONDS - (us % MICROSECONDS < 0);
	time_t moment = (time_t)seconds;
	struct tm parts;

	if (gmtime_r(&moment, &parts) == NULL ||
	    strftime(buffer, TEXT_SMALL, "%Y-%m-%d %H:%M:%SZ", &parts) == 0)
		snprintf(buffer, TEXT_SMALL, "%" PRId64 " s", seconds);
	return buffer;
}

const char *text_time_of_day(char buffer[TEXT_SMALL], int64_t us)
{
	char *blank;

	text_time(buffer, us);
	blank = strrchr(buffer, ' ');
	return blank && blank[1] != 's' ? blank + 1 : buffer;
}

static int dash_before(int byte)
{
	return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

const char *text_uuid(char buffer[TEXT_SMALL], const uint8_t id[16])
{
	char *end = buffer;

	for (int i = 0; i < 16; i++) {
		if (dash_before(i))
			*end++ = '-';
		end += snprintf(end, 3, "%02x", id[i]);
	}
	return buffer;
}

static int hex_digit(char character)
{
	if (character >= '0' && character <= '9')
		return character - '0';
	if (character >= 'a' && character <= 'f')
		return character - 'a' + 10;
	if (character >= 'A' && character <= 'F')
		return character - 'A' + 10;
	return -1;
}

int text_parse_uuid(const char *text, uint8_t ret_id[16])
{
	uint8_t id[16];

	for (int i = 0; i < 16; i++) {
		int high, low;

		if (dash_before(i) && *text++ != '-')
			return -1;
		high = hex_digit(text[0]);
		low = high < 0 ? -1 : hex_digit(text[1]);
		if (low < 0)
			return -1;
		id[i] = (uint8_t)(high * 16 + low);
		text += 2;
	}
	if (*text != '\0')
		return -1;
	memcpy(ret_id, id, sizeof(id));
	return 0;
}

int text_parse_integer(const char *text, int64_t minimum, int64_t maximum, int64_t *ret_value)
{
	long long value;
	char *end;

	if (text[0] != '-' && (text[0] < '0' || text[0] > '9'))
		return -1;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || value < minimum || value > maximum)
		return -1;
	*ret_value = value;
	return 0;
}

/* Bytes of the longest run of whole words that fits; at least one word, however long. */
static size_t fitting_length(const char *text, size_t room)
{
	size_t fits = 0;
	size_t columns = 0;

	for (size_t i = 0;; i++) {
		if (text[i] == '\0' || text[i] == ' ' || text[i] == '\n') {
			if (fits > 0 && columns > room)
				return fits;
			fits = i;
			if (text[i] != ' ')
				return fits;
		}
		columns += ((unsigned char)text[i] & 0xc0) !=
		           0x80; /* continuation bytes of UTF-8 */
	}
}

void text_wrap(FILE *stream, const char *text, int indent, int column)
{
	int first = 1;

	while (*text != '\0') {
		int used = first && column > indent ? column : indent;
		size_t length = fitting_length(text, (size_t)(TEXT_WIDTH - used));

		fprintf(stream, "%*s%.*s\n", first && column > 0 ? used - column : indent, "",
		        (int)length, text);
		text += length;
		while (*text == ' ')
			text++;
		if (*text == '\n')
			text++;
		first = 0;
	}
}
