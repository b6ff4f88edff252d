/* SPDX-License-Identifier: MIT */
/* Any text as conninfo: parsed or refused, its lists taken apart within their ends, never repeated in a message. */
#include "connect.h"
#include "fuzz.h"
#include "qretention.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char password[] = "host=a,b,c port=1,2,3 password=hunter2-hunter2 ";
	struct target *target = NULL;
	struct error error;
	char *text = fuzz_text(data, size, 0), *whole = malloc(strlen(text) + sizeof(password));

	setenv("HOME", "/nonexistent", 1);
	strcpy(whole, password);
	strcat(whole, text);
	for (int i = 0; i < 2; i++) {
		memset(&error, 0, sizeof(error));
		if (target_new(i == 0 ? text : whole, &target, &error) == QRET_DONE) {
			FUZZ_REQUIRE(target_hosts(target) >= 1);
			target_free(target);
		} else {
			FUZZ_REQUIRE(error.message[0] != '\0');
			FUZZ_REQUIRE(strstr(error.message, "hunter2") == NULL &&
			             strstr(error.hint, "hunter2") == NULL);
		}
	}
	free(whole);
	free(text);
	return 0;
}
