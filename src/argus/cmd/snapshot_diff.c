/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_diff.c - which files of two snapshots are not the same. */
#include "argus/cmd/cmd.h"

#include <stdlib.h>
#include <string.h>

#include "argus/jobview.h"
#include "argus/snapcall.h"

struct snapshot_diff_opts {
    int output;
};

static const struct opt OPTS[] = {OPT_OUTPUT(struct snapshot_diff_opts)};

static void print(struct cli *cli, const json_t *answer)
{
    size_t i;
    const json_t *one;
    json_array_foreach (json_get_array(answer, "differences"), i, one) {
        const char *how = jobview_str(one, "how");
        bool added = !strcmp(how, "added"), removed = !strcmp(how, "removed");
        enum style style = added ? STYLE_GREEN : removed ? STYLE_RED : STYLE_YELLOW;
        (void)fprintf(cli->out, "%s%c %s%s\n", term_on(&cli->term, style),
                      added     ? '+'
                      : removed ? '-'
                                : '~',
                      jobview_str(one, "path"), term_off(&cli->term, style));
    }
    cli_talk(cli, "%lld added, %lld removed, %lld changed%s",
             (long long)json_get_int(answer, "added", 0),
             (long long)json_get_int(answer, "removed", 0),
             (long long)json_get_int(answer, "changed", 0),
             json_get_bool(answer, "more", false) ? "; the first 1000 are shown" : "");
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct snapshot_diff_opts *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(freep) char *path = snapcall_path(args->v[0], ":diff");
    _cleanup_(buf_release) struct buf whole = BUF_INIT(4096);
    (void)buf_adds(&whole, path); /* overflow: the server knows no such name */
    url_query(&whole, "with", args->v[1]);
    int r = cli_open(cli, err);
    if (r >= 0)
        r = client_get(cli->client, buf_str(&whole), &answer, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else
        print(cli, answer);
    return 0;
}

const struct command cmd_snapshot_diff = {
    .name = "snapshot diff",
    .args = "A B",
    .least = 2,
    .most = 2,
    .summary = "compare two snapshots by their files",
    .text = "+ is in B alone, - in A alone, ~ in both and not the same.",
    .example = "argus snapshot diff verl@0.9.0 verl@0.9.1\twhat is new",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct snapshot_diff_opts),
    .run = run,
};
