/* SPDX-License-Identifier: MIT */
/*
 * qretention, the command line of libqretention: reads the command line, opens a context, runs one
 * command. What each command does is in its own file; what deletes is in the library.
 */
#include "driver.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static int takes_next(const char *word)
{
	if (argument_takes_next(driver_arguments, word))
		return 1;
	for (const struct command *const *row = driver_commands; *row; row++)
		if (argument_takes_next((*row)->arguments, word))
			return 1;
	return 0;
}

/*
 * The first word that is neither an option nor an option's value: it names the command, whose table
 * takes part in the parsing proper. NULL where there is none.
 */
static const char *first_word(char **argv)
{
	if (*argv == NULL)
		return NULL;
	for (char **word = argv + 1; *word; word++) {
		if (strcmp(*word, "--") == 0)
			return word[1];
		if ((*word)[0] != '-' || (*word)[1] == '\0')
			return *word;
		if (takes_next(*word) && word[1] != NULL)
			word++;
	}
	return NULL;
}

/* One that has wandered here from --dsn is not repeated: there may be a password in it. */
static int is_conninfo(const char *word)
{
	return strchr(word, '=') != NULL || strstr(word, "://") != NULL;
}

/* command: NULL where the word should have named one. */
static int refuse_word(const char *command, const char *word)
{
	if (is_conninfo(word))
		return usage_error(command, "a connection string is given with --dsn");
	if (command == NULL)
		return usage_error(NULL, "there is no command \"%.40s\"", word);
	return usage_error(command, "\"%.40s\" is one word too many", word);
}

/* The last write may be the first that fails. */
static int finish_output(int code)
{
	if (output_flush() == 0)
		return code;
	if (output_complaint() != NULL)
		fprintf(stderr, "qretention: cannot write the output: %s\n", output_complaint());
	return EXIT_TROUBLE;
}

static int run_command(struct driver *driver, const struct command *command, const void *settings,
                       struct argument_list *words)
{
	int code;

	if (words->count > command->most_words)
		return refuse_word(command->name, words->items[command->most_words]);
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
	if (command == NULL) {
		help_program(stderr);
		return EXIT_USAGE;
	}
	/* The command's own name is the first word. */
	memmove(words->items, words->items + 1, (words->count - 1) * sizeof(*words->items));
	words->count--;
	return run_command(driver, command, settings, words);
}

/*
 * A standard stream that is closed leaves its number to the next descriptor, which may be the
 * server's socket. What takes its place fails to be read or written, as it would have.
 */
static void keep_standard_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			_exit(EXIT_TROUBLE);
}

int main(int argc, char **argv)
{
	const char *name = first_word(argv);
	const struct command *command = name ? find_command(name) : NULL;
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
	keep_standard_streams();
	signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failed write, seen where it happens */
	if (name != NULL && command == NULL)
		code = refuse_word(NULL, name);
	else if (arguments_parse(argc, argv, groups, 2, &words, error) < 0)
		code = usage_error(command ? command->name : NULL, "%s", error);
	else
		code = serve(&driver, command, settings, &words);
	code = finish_output(code);
	arguments_free(groups, 2, &words);
	free(settings);
	return code;
}
