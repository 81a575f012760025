/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - what every command is given: where it prints, whom it talks to, and the
 * few calls that most of them make.
 *
 * Data goes to `out`, talk to stderr through cli_talk(). */
#pragma once
#include <stdbool.h>
#include <stdio.h>

#include "argus/cli/opts.h"
#include "argus/net/client.h"
#include "argus/show/term.h"
#include "argus/show/when.h"

enum output { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_YAML };
extern const char *const OUTPUT_NAMES[];

/* The row of -o, for a struct with an int `output`. */
#define OPT_OUTPUT(opts_struct)                                                                    \
    {                                                                                              \
        .letter = 'o', .name = "output", .type = OPT_CHOICE,                                       \
        .offset = offsetof(opts_struct, output), .arg = "FORMAT",                                  \
        .doc = "table, wide, json or yaml", .choices = OUTPUT_NAMES                                \
    }
#define OPT_UTC(opts_struct)                                                                       \
    {                                                                                              \
        .name = "utc", .type = OPT_FLAG, .offset = offsetof(opts_struct, utc),                     \
        .doc = "times as UTC and not as 'ago'"                                                     \
    }
#define OPT_WATCH(opts_struct)                                                                     \
    {                                                                                              \
        .name = "watch", .type = OPT_FLAG, .offset = offsetof(opts_struct, watch),                 \
        .doc = "print again every 2 s until Ctrl-C"                                                \
    }

struct cli {
    FILE *out;
    struct term term;
    struct settings settings; /* valid once client is there */
    struct client *client;    /* made by cli_open() */
    bool is_data;             /* -o json or yaml: the server's words, whatever the language */
};

void cli_release(struct cli *cli);

/* Read the settings and make the client. Every command that asks the server calls it first. */
must_check int cli_open(struct cli *cli, struct err *err);

/* One line to stderr. */
void cli_talk(const struct cli *cli, const char *fmt, ...) printf_like(2, 3);
/* The error in the language of the terminal: yours. */
char *cli_err_text(const struct cli *cli, const struct err *err);
/* A message with up to three texts. */
void cli_say(const struct cli *cli, const char *id, const char *a, const char *b, const char *c);

struct when cli_when(const struct cli *cli, bool utc);

/* v as JSON or YAML to cli->out. */
void cli_emit(struct cli *cli, const json_t *v, int output);

/* "/v1/jobs/<id><rest>": yours to free(). */
char *cli_job_path(const char *id, const char *rest);
/* One job by id, name or unique prefix. */
must_check int cli_get_job(struct cli *cli, const char *id, json_t **ret, struct err *err);
/* The same at the end of what was followed: a server that is away is asked again, ten times. */
must_check int cli_get_followed(struct cli *cli, const char *id, json_t **ret, struct err *err);

/* Ctrl-C and SIGTERM become a descriptor that ends waits with -EINTR, from here to the end. */
must_check int cli_catch_interrupt(struct cli *cli, struct err *err);

/* Prints one page to cli->out. */
typedef int (*cli_page_f)(struct cli *cli, void *opts, const struct strv *args, struct err *err);
/* The page once, or with watch again and again until Ctrl-C; while watching, an error is
 * shown in place of the page and tried again. */
must_check int cli_page(struct cli *cli,
                        bool watch,
                        cli_page_f page,
                        void *opts,
                        const struct strv *args,
                        struct err *err);
