/* SPDX-License-Identifier: Apache-2.0 */
/* help.c - the manual, on the terminal or as roff. */
#include "argus/cmd/cmd.h"

#include <stdlib.h>

#include "argus/manual.h"
#include "base/str.h"

struct help_opts {
    bool man;
};

static const struct opt OPTS[] = {
    {.name = "man",
     .type = OPT_FLAG,
     .offset = offsetof(struct help_opts, man),
     .doc = "print a man page (roff); COMMAND 'argus' is the page of the program itself"},
};

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct help_opts *o = opts;
    const struct command *c = NULL;
    int used;
    if (args->n && !str_eq(args->v[0], "argus")) {
        int r = command_match((int)args->n, args->v, &c, &used, err);
        if (r < 0)
            return r;
        if ((size_t)used < args->n)
            return err_set(err, ERR_USAGE, "'argus help' does not take '%.60s'", args->v[used]);
    }
    if (o->man)
        manual_roff(c, cli->out);
    else if (c)
        manual_help(c, cli->out);
    else
        manual_overview(cli->out);
    return 0;
}

const struct command cmd_help = {
    .name = "help",
    .args = "[COMMAND]",
    .most = 2,
    .summary = "explain a command",
    .text = "Without COMMAND lists all of them.",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct help_opts),
    .run = run,
};
