/* SPDX-License-Identifier: Apache-2.0 */
/* help.c - what says something about the program itself: its manual, on the terminal or as roff,
 * its version, and the completion script of a shell. */
#include "argus/noun/noun.h"

#include <stdlib.h>

#include "argus/cli/completion.h"
#include "argus/cli/manual.h"
#include "argus/show/member.h"
#include "base/message.h"
#include "base/str.h"
#include "base/version.h"

struct help_opts {
    bool man;
};

static const struct opt HELP_OPTS[] = {
    {.name = "man",
     .type = OPT_FLAG,
     .offset = offsetof(struct help_opts, man),
     .doc = "print a man page (roff); COMMAND 'argus' is the page of the program itself"},
};

static int help_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct help_opts *o = opts;
    const struct command *c = NULL;
    int used;
    if (args->n && !str_eq(args->v[0], "argus")) {
        int r = command_match((int)args->n, args->v, &c, &used, err);
        if (r < 0)
            return r;
        if ((size_t)used < args->n)
            return message_refuse(err, ERR_USAGE, "cli_help_no",
                                  MESSAGE_ARGS(MESSAGE_STR("word", args->v[used])));
    }
    if (o->man)
        manual_roff(c, cli->out);
    else if (c)
        manual_help(c, cli->out);
    else
        manual_overview(cli->out);
    return 0;
}

struct version_opts {
    int output;
    bool client;
};

static const struct opt VERSION_OPTS[] = {
    OPT_OUTPUT(struct version_opts),
    {.name = "client",
     .type = OPT_FLAG,
     .offset = offsetof(struct version_opts, client),
     .doc = "do not ask the server"},
};

static void version_print(struct cli *cli, const json_t *server)
{
    (void)fprintf(cli->out, "argus   %s (%s)\n", ARGUS_VERSION, ARGUS_COMMIT);
    if (!server)
        return;
    const json_t *ray = json_get_object(server, "ray");
    (void)fprintf(cli->out, "argusd  %s at %s\n", member_str(server, "version"),
                  cli->settings.server);
    (void)fprintf(cli->out, "Ray     %s\n",
                  json_get_str(ray, "version", json_get_str(ray, "ray_version", "-")));
}

static int version_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct version_opts *o = opts;
    _cleanup_(json_unrefp) json_t *server = NULL;
    (void)args;
    int r = cli_open(cli, err);
    if (r >= 0 && !o->client)
        r = client_get(cli->client, "/v1/version", &server, err);
    if (o->output < OUTPUT_JSON) {
        version_print(cli, server);
    } else {
        json_t *all = json_pack("{s:{s:s,s:s},s:O?}", "client", "version", ARGUS_VERSION, "commit",
                                ARGUS_COMMIT, "server", server);
        cli_emit(cli, all, o->output);
        json_decref(all);
    }
    return r < 0 ? r : 0;
}

static int completion_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    static const struct {
        const char *shell;
        void (*print)(FILE *out);
    } shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};
    (void)opts;
    for (size_t i = 0; i < array_len(shells); i++) {
        if (str_eq(args->v[0], shells[i].shell)) {
            shells[i].print(cli->out);
            return 0;
        }
    }
    return message_refuse(err, ERR_USAGE, "cli_no_shell",
                          MESSAGE_ARGS(MESSAGE_STR("name", args->v[0])));
}

static const struct command HELP_COMMANDS[] = {
    {
        .name = "help",
        .args = "[COMMAND]",
        .most = 3,
        .summary = "explain a command",
        .text = "Without a COMMAND it lists all commands.",
        .opts = HELP_OPTS,
        .n_opts = array_len(HELP_OPTS),
        .opts_size = sizeof(struct help_opts),
        .run = help_run,
    },
    {
        .name = "version",
        .args = "",
        .summary = "show the versions of client, server and Ray",
        .text = "Prints our own version even when the server cannot be reached (exit status 6).",
        .opts = VERSION_OPTS,
        .n_opts = array_len(VERSION_OPTS),
        .opts_size = sizeof(struct version_opts),
        .run = version_run,
    },
    {
        .name = "completion",
        .args = "bash|zsh|fish",
        .least = 1,
        .most = 1,
        .summary = "print a completion script",
        .text = "The script completes commands, options, their values and job ids.",
        .example = "source <(argus completion bash)\tin ~/.bashrc\n"
                   "argus completion fish | source\tin config.fish",
        .run = completion_run,
    },
};

NOUN(help, HELP_COMMANDS);
