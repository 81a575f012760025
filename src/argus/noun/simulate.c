/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - a trace through the scheduler, without a server. */
#include "argus/noun/noun.h"

#include "argus/simulate/simulate.h"
#include "argus/simulate/simulate_table.h"
#include "base/file.h"

enum { TRACE_TEXT_MAX = 256 << 20 };
enum form { FORM_TABLE, FORM_WIDE, FORM_JSON, FORM_SVG };
static const char *const FORMS[] = {"table", "wide", "json", "svg", NULL};

struct simulate_command {
    struct simulate_texts t;
    int output;
};

/* A row of simulate_texts. */
#define AT(member) offsetof(struct simulate_command, t.member)
static const struct opt SIMULATE_OPTS[] = {
    {.name = "trace",
     .type = OPT_TEXT,
     .offset = AT(trace),
     .arg = "FILE",
     .doc =
         "the past jobs: CSV with submit_time, duration_s, num_gpus, cluster; - is standard input"},
    {.name = "nodes",
     .type = OPT_TEXT,
     .offset = AT(nodes),
     .arg = "NxG",
     .doc = "each pool has N nodes of G GPUs: 64x8"},
    {.name = "load",
     .type = OPT_TEXT,
     .offset = AT(load),
     .arg = "L",
     .doc = "each pool gets the fewest 8-GPU nodes for this share of use (0.85 without --nodes)"},
    {.name = "policy",
     .type = OPT_TEXT,
     .offset = AT(policy),
     .arg = "LIST",
     .doc = "fifo, easy and fair, parted by commas (all three)"},
    {.name = "pool",
     .type = OPT_TEXT,
     .offset = AT(pool),
     .arg = "NAME",
     .doc = "only this pool of the trace"},
    {.name = "guess",
     .type = OPT_TEXT,
     .offset = AT(guess),
     .arg = "LOW-HIGH",
     .doc = "a job's limit is its run times a factor drawn evenly from LOW to HIGH (1-5)"},
    {.name = "seed",
     .type = OPT_NUMBER,
     .offset = AT(seed),
     .arg = "N",
     .doc = "of the guesses (0)"},
    {.name = "no-learner",
     .type = OPT_FLAG,
     .offset = AT(no_learner),
     .doc = "expectations are not learnt from ended runs"},
    {.letter = 'o',
     .name = "output",
     .type = OPT_CHOICE,
     .offset = offsetof(struct simulate_command, output),
     .arg = "FORMAT",
     .doc = "table, wide, json or svg",
     .choices = FORMS},
};

static void simulate_show(struct cli *cli, const struct simulation *s, int form, struct buf *out)
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

static int simulate_command(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct simulate_command *o = opts;
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
    simulate_show(cli, &s, o->output, &out);
    simulate_release(&s);
    return out.failed ? err_set(err, ERR_TOO_LARGE, "the result is larger than 64 MiB") : 0;
}

static const struct command SIMULATE_COMMANDS[] = {
    {
        .name = "simulate",
        .args = "",
        .summary = "replay past jobs through the scheduler",
        .text = "Replays a trace of jobs through the very scheduler that argusd runs, under "
                "strict order (fifo), textbook backfill (easy) and as argusd does it (fair), "
                "side by side. No server is needed; the same input gives the same decisions, "
                "of which the hash is a digest.\n"
                "Each cluster of the trace is a pool of its own. With --load L it gets the "
                "fewest 8-GPU nodes whose GPU-hours from the first to the last submission of "
                "the whole trace are at least demand / L and which hold its largest gang. A "
                "job of more GPUs than a node has takes whole nodes.\n"
                "The true durations are hidden: the scheduler sees a limit, the user's "
                "guess, and what it has learnt from runs that had ended. Utilisation and "
                "fragmentation (GPU-time free while a waiting job needed no more than was "
                "free) are counted from the trace's first to its last submission, waits over "
                "all jobs; starvation is a wait of more than 30 days. ETA is how often a job "
                "started by the time that was foretold with 90% confidence.",
        .example = "argus simulate --trace jobs.csv --load 0.9\tthree policies as a table\n"
                   "argus simulate --trace jobs.csv --nodes 64x8 -o svg > jobs.svg\ta picture",
        .opts = SIMULATE_OPTS,
        .n_opts = array_len(SIMULATE_OPTS),
        .opts_size = sizeof(struct simulate_command),
        .run = simulate_command,
    },
};

NOUN(simulate, SIMULATE_COMMANDS);
