/* SPDX-License-Identifier: Apache-2.0 */
/* why.c - what a job waits for, and what would start it. */
#include "argus/cmd/cmd.h"

#include <inttypes.h>
#include <stdlib.h>

#include "argus/jobview.h"
#include "argus/text.h"
#include "base/str.h"

enum { LABEL_WIDTH = 12, VALUE_MAX = 4096 };

struct why_opts {
    int output;
    bool utc, watch;
};

static const struct opt OPTS[] = {
    OPT_OUTPUT(struct why_opts),
    OPT_UTC(struct why_opts),
    OPT_WATCH(struct why_opts),
};

static void line(struct cli *cli, enum msg_id label, enum style style, const char *value)
{
    const struct term *t = &cli->term;
    const char *name = msg(t->lang, label);
    _cleanup_(buf_release) struct buf clean = BUF_INIT(VALUE_MAX);
    if (!value || !*value)
        return;
    text_clean(&clean, value); /* a longer one is cut */
    int pad = LABEL_WIDTH - text_width(name);
    (void)fprintf(cli->out, "%s%s%s%*s%s%s%s\n", term_on(t, STYLE_DIM), name,
                  term_off(t, STYLE_DIM), pad > 1 ? pad : 1, "", term_on(t, style), buf_str(&clean),
                  term_off(t, style));
}

static void print(struct cli *cli, const json_t *why, const struct when *w)
{
    char eta[2 * WHEN_TEXT_MAX + 16];
    const char *state = jobview_str(why, "state");
    int64_t position = json_get_int(why, "position", 0);
    char *at = position > 0 ? xasprintf("%s, position %" PRId64, state, position) : xstrdup(state);
    line(cli, MSG_L_JOB, STYLE_BOLD, jobview_str(why, "id"));
    line(cli, MSG_L_STATE, jobview_style(state), at);
    line(cli, MSG_L_CODE, STYLE_PLAIN, json_get_str(why, "code", ""));
    line(cli, MSG_L_REASON, STYLE_PLAIN, json_get_str(why, "text", ""));
    line(cli, MSG_L_HINT, STYLE_GREEN, json_get_str(why, "hint_text", ""));
    line(cli, MSG_ETA, STYLE_PLAIN, jobview_eta(why, w, eta, sizeof(eta)));
    free(at);
}

static int page(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct why_opts *o = opts;
    _cleanup_(json_unrefp) json_t *why = NULL;
    _cleanup_(freep) char *path = cli_job_path(args->v[0], "/why");
    int r = client_get(cli->client, path, &why, err);
    if (r < 0)
        return r;
    struct when w = cli_when(cli, o->utc);
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, why, o->output);
    else
        print(cli, why, &w);
    return 0;
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct why_opts *o = opts;
    int r = cli_open(cli, err);
    return r < 0 ? r : cli_page(cli, o->watch, page, opts, args, err);
}

const struct command cmd_why = {
    .name = "why",
    .args = "ID",
    .least = 1,
    .most = 1,
    .summary = "say what a job waits for",
    .text = "One reason with its code, the evidence, the smallest change that would start the job "
            "now (it is true: applied alone, the job starts at once), and when it is expected to "
            "start: half of such forecasts come true by the first time, nine of ten by the second.",
    .example = "argus why grpo-7\twhy does it not start",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct why_opts),
    .run = run,
};
