/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - the table of commands: parsing, --help, man pages and completion
 * all read these rows. A command is one file in cmd/ that defines one row. */
#pragma once
#include <stddef.h>
#include <stdio.h>

#include "argus/opts.h"

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
    size_t opts_size;
    command_run_f run;
};

/* All of them, in the order of the manual; n of them. Borrowed for ever. */
const struct command *const *command_table(size_t *ret_n);

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
