/* SPDX-License-Identifier: MIT */
/*
 * qretention, the command line of libqretention: reads the command line, opens a context, runs one
 * command. What each command does is in its own file; what deletes is in the library.
 */
#include "driver.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

const struct argument driver_arguments[] = {
	{ .letter = 'd',
	  .name = "dsn",
	  .value_name = "CONNINFO",
	  .help = "connection string or URI; without it the PG* environment. Better keep the "
	          "password in a password file or PGPASSWORD: other users can see a command line",
	  .kind = ARGUMENT_TEXT,
	  .offset = offsetof(struct driver_settings, dsn) },
	{ .letter = 's',
	  .name = "set",
	  .value_name = "NAME=VALUE",
	  .help = "set an option of the library, after the environment; may be given again",
	  .kind = ARGUMENT_LIST,
	  .offset = offsetof(struct driver_settings, sets) },
	{ .name = "no-environment",
	  .help = "do not read library options from the environment",
	  .kind = ARGUMENT_FLAG,
	  .offset = offsetof(struct driver_settings, ignore_environment) },
	{ .letter = 'j',
	  .name = "json",
	  .help = "results as JSON, one object a line",
	  .kind = ARGUMENT_FLAG,
	  .offset = offsetof(struct driver_settings, json) },
	{ .letter = 'v',
	  .name = "verbose",
	  .help = "log lines on stderr from level info on; twice: from debug on",
	  .kind = ARGUMENT_COUNT,
	  .offset = offsetof(struct driver_settings, verbose) },
	{ .letter = 'q',
	  .name = "quiet",
	  .help = "no log lines, and no progress line",
	  .kind = ARGUMENT_FLAG,
	  .offset = offsetof(struct driver_settings, quiet) },
	{ .letter = 'h',
	  .name = "help",
	  .help = "this text",
	  .kind = ARGUMENT_FLAG,
	  .offset = offsetof(struct driver_settings, help) },
	{ .letter = 'V',
	  .name = "version",
	  .help = "the program's version",
	  .kind = ARGUMENT_FLAG,
	  .offset = offsetof(struct driver_settings, version) },
	{ 0 },
};

const struct argument no_arguments[] = { { 0 } };

const struct command *const driver_commands[] = {
	&command_install,
	&command_version,
	&command_options,
	&command_worklist,
	&command_step,
	&command_cycle,
	&command_run,
	&command_prune,
	&command_record,
	&command_quiet_receivers,
	NULL,
};

static const struct command *find_command(const char *name)
{
	for (const struct command *const *row = driver_commands; *row; row++)
		if (strcmp((*row)->name, name) == 0)
			return *row;
	return NULL;
}

/*
 * The command is the first word that names one. It is looked for before the parsing proper, since
 * its table takes part in that; a value that happens to read like a command comes after an option.
 */
static const struct command *choose_command(char **argv)
{
	for (char **word = argv + 1; *word; word++) {
		const struct command *command = find_command(*word);
		const char *before = word[-1];
		int after_option = word - 1 > argv && before[0] == '-' &&
		                   strchr(before, '=') == NULL &&
		                   (strcmp(before, "-d") == 0 || strcmp(before, "--dsn") == 0 ||
		                    strcmp(before, "-s") == 0 || strcmp(before, "--set") == 0);

		if (command != NULL && !after_option)
			return command;
	}
	return NULL;
}

/* The last write may be the first that fails. A reader that went away is no news to anybody. */
static int finish_output(int code)
{
	errno = 0;
	if (output_flush() == 0)
		return code;
	if (errno != EPIPE && errno != 0)
		fprintf(stderr, "qretention: cannot write the output: %s\n", strerror(errno));
	return EXIT_TROUBLE;
}

static int run_command(struct driver *driver, const struct command *command, const void *settings,
                       struct argument_list *words)
{
	int code;

	if (words->count > command->most_words)
		return usage_error(command->name, "too many arguments");
	code = driver_open(driver, command->unconnected);
	if (code == 0)
		code = command->run(driver, settings, words);
	driver_close(driver);
	return code;
}

static int serve(struct driver *driver, const struct command *command, const void *settings,
                 struct argument_list *words)
{
	if (driver->settings.version) {
		printf("qretention %s\n", QRET_VERSION);
		return 0;
	}
	if (driver->settings.help) {
		if (command)
			help_command(stdout, command);
		else
			help_program(stdout);
		return 0;
	}
	if (command == NULL && words->count > 0) {
		char message[80];

		snprintf(message, sizeof(message), "there is no command \"%.40s\"",
		         words->items[0]);
		return usage_error(NULL, message);
	}
	if (command == NULL) {
		help_program(stderr);
		return EXIT_USAGE;
	}
	/* The command's own name is the first word, wherever it stood. */
	memmove(words->items, words->items + 1, (words->count - 1) * sizeof(*words->items));
	words->count--;
	return run_command(driver, command, settings, words);
}

int main(int argc, char **argv)
{
	const struct command *command = choose_command(argv);
	struct driver driver = { 0 };
	void *settings = calloc(1, command && command->settings_size ? command->settings_size : 1);
	struct argument_group groups[] = {
		{ driver_arguments, &driver.settings },
		{ command ? command->arguments : no_arguments, settings },
	};
	struct argument_list words = { 0 };
	char error[ARGUMENT_ERROR_SIZE];
	int code;

	if (settings == NULL)
		return EXIT_TROUBLE;
	signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failed write, seen where it happens */
	if (arguments_parse(argc, argv, groups, 2, &words, error) < 0)
		code = usage_error(command ? command->name : NULL, error);
	else
		code = serve(&driver, command, settings, &words);
	code = finish_output(code);
	arguments_free(groups, 2, &words);
	free(settings);
	return code;
}
