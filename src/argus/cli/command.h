/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - the table of commands: parsing, --help, man pages and completion
 * all read these rows.
 *
 * A row is data (`ask`), or has a function where more is done than ask and show (`run`). The rows
 * of one noun are one file of noun/, which defines the tables of nouns. */
#pragma once
#include <stddef.h>
#include <stdio.h>

#include "argus/cli/ask.h"
#include "argus/cli/opts.h"

struct cli;

/* The exit status, or a negative code with its sentence. opts is the command's own struct. */
typedef int (*command_run_f)(struct cli *cli, void *opts, const struct strv *args, struct err *err);

struct command {
    const char *name;    /* "ls", "node ls" */
    const char *alias;   /* NULL = none */
    const char *args;    /* "ID…"; "" = takes none */
    size_t least, most;  /* how many arguments */
    const char *summary; /* "list jobs" */
    const char *text;    /* what the manual says about it: paragraphs parted by "\n" */
    const char *example; /* "command\twhat it does\n" lines */
    const struct opt *opts;
    size_t n_opts;
    size_t opts_size;  /* of the struct that run is given */
    command_run_f run; /* NULL: it is data */
    struct ask ask;
};

/* The commands of one noun, or of a few that belong together. */
struct noun {
    const struct command *commands;
    size_t n;
};

/* As many arguments as one likes. */
#define ARGS_ANY ((size_t)-1)
/* Rows of options, and of columns. */
#define OPTS(rows) .opts = (rows), .n_opts = array_len(rows)
#define COLUMNS(rows) .columns = (rows), .n_columns = array_len(rows)

/* All nouns in the order of the manual. noun/ defines them: nothing here
 * knows which there are. */
extern const struct noun *const NOUNS[];
extern const size_t NOUN_COUNT;

/* The i-th command; NULL after the last. */
const struct command *command_at(size_t i);

/* By name or alias; NULL if there is none. */
const struct command *command_find(const char *name);

/* The command that argv begins with; *ret_used says how many words its name took. ERR_USAGE
 * with the nearest name. */
must_check int command_match(int argc,
                             char **argv,
                             const struct command **ret,
                             int *ret_used,
                             struct err *err);

/* Parse, check the number of arguments, run; --help prints to out. The result of run. */
must_check int command_run(const struct command *c,
                           struct cli *cli,
                           int argc,
                           char **argv,
                           FILE *out,
                           struct err *err);
