/* SPDX-License-Identifier: MIT */
/* Texts with and without tokens: an expansion has the length it must have, and touches nothing but tokens. */
#include "fuzz.h"
#include "template.h"

/* The same, written the slow way. */
static void expand_slowly(const char *text, const struct template_name *names, char *target)
{
	while (*text != '\0') {
		const struct template_name *found = NULL;
		char token[64];

		for (const struct template_name *name = names; name->token != NULL && found == NULL;
		     name++) {
			strcpy(token, "@");
			strcat(token, name->token);
			strcat(token, "@");
			if (strncmp(text, token, strlen(token)) == 0)
				found = name;
		}
		if (found == NULL) {
			*target++ = *text++;
			continue;
		}
		strcpy(target, found->value);
		target += strlen(found->value);
		text += strlen(found->token) + 2;
	}
	*target = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct template_name names[] = {
		{ "log", "\"queen\"" }, { "log_literal", "'queen'" },
		{ "l", "@log@" },       { "", "empty" },
		{ NULL, NULL },
	};
	char *text = fuzz_text(data, size, 0), *expanded = template_expand(text, names);
	char *expected = malloc(8 * strlen(text) + 16);

	FUZZ_REQUIRE(expanded != NULL && expected != NULL);
	expand_slowly(text, names, expected);
	FUZZ_REQUIRE(strcmp(expanded, expected) == 0);
	free(expected);
	free(expanded);
	free(text);
	return 0;
}
