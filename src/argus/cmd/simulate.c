/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - a trace through the scheduler, without a server. */
#include "argus/cmd/cmd.h"

#include "argus/simulate.h"
#include "argus/simulate_table.h"
#include "base/file.h"

enum { TRACE_TEXT_MAX = 256 << 20 };
enum form { FORM_TABLE, FORM_WIDE, FORM_JSON, FORM_SVG };
static const char *const FORMS[] = {"table", "wide", "json", "svg", NULL};

struct opts {
    struct simulate_texts t;
    int output;
};

/* A row of simulate_texts. */
#define AT(member) offsetof(struct opts, t.member)
static const struct opt OPTS[] = {
    {0, "trace", OPT_TEXT, AT(trace), "FILE",
     "the past jobs: CSV with submit_time, duration_s, num_gpus, cluster; - is standard input",
     NULL},
    {0, "nodes", OPT_TEXT, AT(nodes), "NxG", "each pool has N nodes of G GPUs: 64x8", NULL},
    {0, "load", OPT_TEXT, AT(load), "L",
     "each pool gets the fewest 8-GPU nodes for this share of use (0.85 without --nodes)", NULL},
    {0, "policy", OPT_TEXT, AT(policy), "LIST", "fifo, easy and fair, parted by commas (all three)",
     NULL},
    {0, "pool", OPT_TEXT, AT(pool), "NAME", "only this pool of the trace", NULL},
    {0, "guess", OPT_TEXT, AT(guess), "LOW-HIGH",
     "a job's limit is its run times a factor drawn evenly from LOW to HIGH (1-5)", NULL},
    {0, "seed", OPT_NUMBER, AT(seed), "N", "of the guesses (0)", NULL},
    {0, "no-learner", OPT_FLAG, AT(no_learner), NULL, "expectations are not learnt from ended runs",
     NULL},
    {'o', "output", OPT_CHOICE, offsetof(struct opts, output), "FORMAT", "table, wide, json or svg",
     FORMS},
};

static void show(struct cli *cli, const struct simulation *s, int form, struct buf *out)
{
    if (form == FORM_TABLE || form == FORM_WIDE) {
        simulate_table(s, &cli->term, form == FORM_WIDE, cli->out);
        return;
    }
    if (form == FORM_JSON)
        simulate_json(s, out);
    else
        simulate_svg(s, out);
    (void)fwrite(out->data, 1, out->len, cli->out); /* main() looks at stdout */
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct opts *o = opts;
    struct simulate_opts so;
    struct simulation s;
    struct trace trace = {0};
    _cleanup_(buf_release) struct buf text = BUF_INIT(TRACE_TEXT_MAX),
                                      out = BUF_INIT(SIMULATE_OUT_MAX);
    (void)args;
    int r = simulate_read(&o->t, &so, err);
    if (r == 0)
        r = file_read_input(so.file, &text, err);
    if (r == 0)
        r = trace_parse(so.file, buf_str(&text), text.len, &trace, err);
    buf_release(&text);
    if (r == 0)
        r = simulate_run(&so, &trace, &s, err);
    if (r < 0)
        return r;
    show(cli, &s, o->output, &out);
    simulate_release(&s);
    return out.failed ? err_set(err, ERR_TOO_LARGE, "the result is larger than 64 MiB") : 0;
}

const struct command cmd_simulate = {
    .name = "simulate",
    .args = "",
    .summary = "replay past jobs through the scheduler",
    .text =
        "Replays a trace of jobs through the very scheduler that argusd runs, under strict order "
        "(fifo), textbook backfill (easy) and as argusd does it (fair), side by side. No server is "
        "needed; the same input gives the same decisions, of which the hash is a digest.\n"
        "Each cluster of the trace is a pool of its own. With --load L it gets the fewest 8-GPU "
        "nodes whose GPU-hours from the first to the last submission of the whole trace are at "
        "least demand / L and which hold its largest gang. A job of more GPUs than a node has "
        "takes whole nodes.\n"
        "The true durations are hidden: the scheduler sees a limit, the user's guess, and what it "
        "has learnt from runs that had ended. Utilisation and fragmentation (GPU-time free while "
        "a waiting job needed no more than was free) are counted from the trace's first to its "
        "last submission, waits over all jobs; starvation is a wait of more than 30 days. ETA "
        "is how often a job started by the time that was foretold with 90% confidence.",
    .example = "argus simulate --trace jobs.csv --load 0.9\tthree policies as a table\n"
               "argus simulate --trace jobs.csv --nodes 64x8 -o svg > jobs.svg\ta picture",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct opts),
    .run = run,
};
