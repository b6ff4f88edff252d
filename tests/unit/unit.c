/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>

#define TEST_SECONDS 30 /* natively; valgrind is given more by CK_TIMEOUT_MULTIPLIER */

int unit_run(const char *module, const TTest *const *tests)
{
	Suite *suite = suite_create(module);
	TCase *tcase = tcase_create(module);
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, TEST_SECONDS);
	for (; *tests != NULL; tests++)
		tcase_add_test(tcase, *tests);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

bool unit_is_utf8(const char *text)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };

	while (*text != '\0') {
		unsigned char lead = (unsigned char)*text++;
		int tail = lead < 0x80       ? 0
		           : lead >> 5 == 6  ? 1
		           : lead >> 4 == 14 ? 2
		           : lead >> 3 == 30 ? 3
		                             : -1;
		uint32_t point = tail == 0 ? lead : lead & (0x3fu >> (tail & 7));

		if (tail < 0)
			return false;
		for (int i = 0; i < tail; i++) {
			if (((unsigned char)*text & 0xc0) != 0x80)
				return false;
			point = point << 6 | ((unsigned char)*text++ & 0x3fu);
		}
		if (tail > 0 && point < least[tail + 1])
			return false;
		if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
			return false;
	}
	return true;
}

long unit_stride(long slow)
{
	const char *preloaded = getenv("LD_PRELOAD");

	return preloaded != NULL && strstr(preloaded, "vgpreload") != NULL ? slow : 1;
}

int unit_open_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}
