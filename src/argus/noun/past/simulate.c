/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - past jobs through the scheduler: a trace here, without a server, or the server's own
 * history there; both are told by the same tables. */
#include "argus/noun/noun.h"

#include "argus/simulate/simulate.h"
#include "argus/simulate/simulate_table.h"
#include "base/file.h"
#include "base/message.h"
#include "base/text.h"

enum { TRACE_TEXT_MAX = 256 << 20, ASK_AGAIN_MS = 500 };
enum form { FORM_TABLE, FORM_WIDE, FORM_JSON, FORM_SVG };
static const char *const FORMS[] = {"table", "wide", "json", "svg", NULL};

struct simulate_command {
    struct simulation_texts t;
    bool history;
    const char *since;
    int output;
};

/* A row of simulation_texts. */
#define AT(member) offsetof(struct simulate_command, t.member)
static const struct opt SIMULATE_OPTS[] = {
    {.name = "trace",
     .type = OPT_TEXT,
     .offset = AT(trace),
     .arg = "FILE",
     .doc =
         "the past jobs: CSV with submit_time, duration_s, num_gpus, cluster; - is standard input"},
    {.name = "history",
     .type = OPT_FLAG,
     .offset = offsetof(struct simulate_command, history),
     .doc = "the jobs that the server knows and you may see; the server plays them"},
    {.name = "since",
     .type = OPT_TEXT,
     .offset = offsetof(struct simulate_command, since),
     .arg = "TIME",
     .doc = "with --history: jobs queued from this time on, or this long ago (28d)"},
    {.name = "nodes",
     .type = OPT_TEXT,
     .offset = AT(nodes),
     .arg = "NxG",
     .doc = "each pool has N nodes of G GPUs: 64x8"},
    {.name = "load",
     .type = OPT_TEXT,
     .offset = AT(load),
     .arg = "L",
     .doc = "each pool gets the fewest 8-GPU nodes for this share of use (0.85 without --nodes; "
            "with --history the nodes that there are now)"},
    {.name = "policy",
     .type = OPT_TEXT,
     .offset = AT(policy),
     .arg = "LIST",
     .doc = "fifo, easy, fair, flow and shortest, parted by commas (the first three)"},
    {.name = "checkpoints",
     .type = OPT_TEXT,
     .offset = AT(checkpoints),
     .arg = "EVERY,SAVE,RESTART",
     .doc = "under flow: time from one checkpoint of a job to the next, to save one, and to start "
            "again (30m,1m,3m)"},
    {.name = "restartable",
     .type = OPT_TEXT,
     .offset = AT(restartable),
     .arg = "SHARE",
     .doc = "share of the jobs that may be set back under flow (1)"},
    {.name = "pool",
     .type = OPT_TEXT,
     .offset = AT(pool),
     .arg = "NAME",
     .doc = "replay only this pool of the trace"},
    {.name = "guess",
     .type = OPT_TEXT,
     .offset = AT(guess),
     .arg = "LOW-HIGH",
     .doc = "a job's limit is its run times a factor drawn evenly from LOW to HIGH (1-5)"},
    {.name = "seed",
     .type = OPT_NUMBER,
     .offset = AT(seed),
     .arg = "N",
     .doc = "seed of the guesses (0)"},
    {.name = "no-learner",
     .type = OPT_FLAG,
     .offset = AT(no_learner),
     .doc = "expectations are not learnt from ended runs"},
    {.letter = 'o',
     .name = "output",
     .type = OPT_CHOICE,
     .offset = offsetof(struct simulate_command, output),
     .arg = "FORMAT",
     .doc = "table, wide, json or svg (of a trace)",
     .choices = FORMS},
};

/* ---- a trace, here ---- */

static int simulate_show(struct cli *cli,
                         const struct simulation *s,
                         int form,
                         struct buf *out,
                         struct err *err)
{
    if (form == FORM_SVG)
        simulate_svg(s, out);
    else
        simulation_page(s, out);
    if (out->failed)
        return message_refuse(err, ERR_TOO_LARGE, "cli_result_large", MESSAGE_NO_ARGS);
    if (form == FORM_JSON || form == FORM_SVG) {
        (void)fwrite(out->data, 1, out->len, cli->out); /* main() looks at stdout */
        return 0;
    }
    _cleanup_(json_unrefp) json_t *result = json_loads(buf_str(out), 0, NULL);
    simulate_table(result, &cli->term, form == FORM_WIDE, cli->out);
    return 0;
}

static int simulate_here(struct cli *cli, const struct simulate_command *o, struct err *err)
{
    struct simulation_opts so;
    struct simulation s;
    struct trace trace = {0};
    _cleanup_(buf_release) struct buf text = BUF_INIT(TRACE_TEXT_MAX),
                                      out = BUF_INIT(SIMULATION_OUT_MAX);
    int r = simulation_read(&o->t, &so, err);
    if (r == 0)
        r = file_read_input(so.name, &text, err);
    if (r == 0)
        r = trace_parse(so.name, buf_str(&text), text.len, &trace, err);
    buf_release(&text);
    if (r == 0)
        r = simulation_run(&so, &trace, NULL, &s, err);
    if (r < 0)
        return r;
    r = simulate_show(cli, &s, o->output, &out, err);
    simulation_release(&s);
    return r;
}

/* ---- the server's history, there ---- */

static bool simulate_is_going(const json_t *page)
{
    const char *state = json_get_str(page, "state", "");
    return str_eq(state, "waiting") || str_eq(state, "running");
}

static void simulate_query(const struct simulate_command *o, struct buf *path)
{
    char seed[24] = "";
    if (o->t.seed)
        text_printf(seed, "%lld", (long long)o->t.seed);
    url_query(path, "since", o->since);
    url_query(path, "nodes", o->t.nodes);
    url_query(path, "load", o->t.load);
    url_query(path, "policy", o->t.policy);
    url_query(path, "pool", o->t.pool);
    url_query(path, "guess", o->t.guess);
    url_query(path, "seed", *seed ? seed : NULL);
    url_query(path, "learner", o->t.no_learner ? "false" : NULL);
}

/* Ask until it is over; what was asked for goes on at the server after Ctrl-C. */
static int simulate_await(struct cli *cli, json_t **page, struct err *err)
{
    int r = cli_catch_interrupt(cli, err);
    _cleanup_(freep) char *path = ask_path("/v1/simulations/{}", json_get_str(*page, "id", ""));
    while (r == 0 && simulate_is_going(*page)) {
        r = client_pause(cli->client, ASK_AGAIN_MS);
        if (r == 0) {
            json_decref(*page);
            *page = NULL;
            r = client_get(cli->client, path, page, err);
        }
    }
    return r;
}

static int simulate_tell(struct cli *cli, const json_t *page, int form, struct err *err)
{
    const json_t *result = json_object_get(page, "result"), *reason;
    if (form == FORM_JSON) {
        cli_emit(cli, page, OUTPUT_JSON);
        return 0;
    }
    if (json_is_object(result)) {
        simulate_table(result, &cli->term, form == FORM_WIDE, cli->out);
        return 0;
    }
    reason = json_object_get(page, "reason");
    const char *why = json_get_str(reason, "text", json_get_str(page, "state", "?"));
    return message_refuse(
        err, ERR_REFUSED, "cli_simulation_none",
        MESSAGE_ARGS(MESSAGE_STR("id", json_get_str(page, "id", "?")), MESSAGE_STR("why", why)));
}

static int simulate_there(struct cli *cli, const struct simulate_command *o, struct err *err)
{
    struct simulation_opts so;
    _cleanup_(json_unrefp) json_t *page = NULL;
    _cleanup_(buf_release) struct buf path = BUF_INIT(4096);
    int r = simulation_read(&o->t, &so, err);
    if (r < 0)
        return r;
    if (o->output == FORM_SVG)
        return message_refuse(err, ERR_USAGE, "cli_simulate_svg", MESSAGE_NO_ARGS);
    r = cli_open(cli, err);
    if (r < 0)
        return r;
    (void)buf_adds(&path, "/v1/simulations"); /* fits */
    simulate_query(o, &path);
    if (path.failed)
        return message_refuse(err, ERR_USAGE, "cli_options_long", MESSAGE_NO_ARGS);
    r = ask_send(cli, "POST", buf_str(&path), NULL, 0, &page, err);
    if (r == 0)
        r = simulate_await(cli, &page, err);
    return r < 0 ? r : simulate_tell(cli, page, o->output, err);
}

static int simulate_command(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    struct simulate_command *o = opts;
    (void)args;
    o->t.dashes = true;
    if (o->history && o->t.trace)
        return message_refuse(err, ERR_USAGE, "cli_simulate_both", MESSAGE_NO_ARGS);
    if (o->history)
        return simulate_there(cli, o, err);
    if (!o->t.trace)
        return message_refuse(err, ERR_USAGE, "cli_simulate_which", MESSAGE_NO_ARGS);
    return simulate_here(cli, o, err);
}

static int simulate_show_kept(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct simulate_command *o = opts;
    _cleanup_(json_unrefp) json_t *page = NULL;
    _cleanup_(freep) char *path = ask_path("/v1/simulations/{}", args->v[0]);
    int r = cli_open(cli, err);
    if (r == 0)
        r = client_get(cli->client, path, &page, err);
    if (r == 0 && o->output != FORM_JSON)
        r = simulate_await(cli, &page, err);
    return r < 0 ? r : simulate_tell(cli, page, o->output, err);
}

/* ---- the rows ---- */

static const char *const KEPT_FORMS[] = {"table", "wide", "json", NULL};
static const struct opt SHOW_OPTS[] = {
    {.letter = 'o',
     .name = "output",
     .type = OPT_CHOICE,
     .offset = offsetof(struct simulate_command, output),
     .arg = "FORMAT",
     .doc = "table, wide or json",
     .choices = KEPT_FORMS},
};
static const struct opt LS_OPTS[] = {LISTING_OPTS};
static const struct opt DO_OPTS[] = {OPT_OUTPUT(struct listing_opts)};

static const struct column SIMULATIONS[] = {
    {.title = "say_id", .key = "id"},
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 8, .key = "name"},
    {.title = "say_user", .flags = COLUMN_FLEX, .least = 6, .rank = 2, .key = "user"},
    {.title = "say_state", .key = "state"},
    {.title = "say_jobs", .flags = COLUMN_RIGHT, .rank = 1, .key = "jobs", .as = CELL_VALUE},
    {.title = "say_made", .key = "created_at", .as = CELL_TIME},
};

static const struct command SIMULATE_COMMANDS[] = {
    {
        .name = "simulate",
        .args = "",
        .summary = "replay past jobs through the scheduler",
        .text = "Replays a trace of jobs through the very scheduler that argusd runs, under "
                "strict order (fifo), textbook backfill (easy) and as argusd does it (fair), "
                "side by side. With --trace no server is needed; the same input gives the same "
                "decisions, of which the hash is a digest. With --history the server plays the "
                "jobs that it knows and you may see, on the nodes that there are now, and keeps "
                "the result.\n"
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
                   "argus simulate --trace jobs.csv --nodes 64x8 -o svg > jobs.svg\ta picture\n"
                   "argus simulate --history --since 14d\tour own last two weeks",
        .opts = SIMULATE_OPTS,
        .n_opts = array_len(SIMULATE_OPTS),
        .opts_size = sizeof(struct simulate_command),
        .run = simulate_command,
    },
    {
        .name = "simulate ls",
        .args = "",
        .summary = "list the simulations that the server keeps",
        .text = "Your own; admins and users of role viewer see all. Of each user the newest few "
                "are kept.",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/simulations",
                .table = {.key = "simulations",
                          COLUMNS(SIMULATIONS),
                          .none = "say_no_simulations"}},
    },
    {
        .name = "simulate show",
        .args = "ID",
        .least = 1,
        .most = 1,
        .summary = "show the result of a simulation that the server keeps",
        .text = "Waits until a simulation that still runs has ended.",
        OPTS(SHOW_OPTS),
        .opts_size = sizeof(struct simulate_command),
        .run = simulate_show_kept,
    },
    {
        .name = "simulate cancel",
        .args = "ID",
        .least = 1,
        .most = 1,
        .summary = "end a simulation that waits or runs",
        .text = "It stays in the list, without a result.",
        OPTS(DO_OPTS),
        .ask = {.method = "POST",
                .path = "/v1/simulations/{}:cancel",
                .done = "say_done_cancelled",
                .subject = "simulation {id}"},
    },
    {
        .name = "simulate rm",
        .args = "ID",
        .least = 1,
        .most = 1,
        .summary = "remove a simulation and its result",
        .text = "A simulation that still runs is ended first.",
        OPTS(DO_OPTS),
        .ask = {.method = "DELETE",
                .path = "/v1/simulations/{}",
                .done = "say_done_removed",
                .subject = "simulation {id}"},
    },
};

NOUN(simulate, SIMULATE_COMMANDS);
