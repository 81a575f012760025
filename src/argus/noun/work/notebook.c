/* SPDX-License-Identifier: Apache-2.0 */
/* notebook.c - notebooks: JupyterLab on a lease. */
#include "argus/noun/noun.h"

#include <stdlib.h>
#include <string.h>

#include "argus/show/member.h"
#include "base/message.h"
#include "base/text.h"

struct notebook_opts {
    int output;
    const char *gpus, *cpus, *memory, *snapshot, *python, *project, *idle;
    struct strv pool, secrets;
    int64_t priority;
};
#define NB(otype, member) .type = (otype), .offset = offsetof(struct notebook_opts, member)
static const struct opt START_OPTS[] = {
    {.name = "gpus",
     NB(OPT_TEXT, gpus),
     .arg = "N",
     .to = "body:gpus",
     .doc = "0 (the default), 0.5 of one, or whole ones"},
    {.name = "cpus",
     NB(OPT_TEXT, cpus),
     .arg = "N",
     .to = "body:cpus",
     .doc = "CPUs that the notebook is given"},
    {.name = "memory",
     NB(OPT_TEXT, memory),
     .arg = "SIZE",
     .to = "body:memory",
     .doc = "memory that the queue reserves for it"},
    {.name = "snapshot",
     NB(OPT_TEXT, snapshot),
     .arg = "NAME@VERSION",
     .to = "body:snapshot",
     .doc = "code that its cells can import"},
    {.name = "python",
     NB(OPT_TEXT, python),
     .arg = "PATH",
     .to = "body:python",
     .doc = "an interpreter that has JupyterLab, where the machine's own has not"},
    {.name = "project",
     NB(OPT_TEXT, project),
     .arg = "NAME",
     .to = "body:project",
     .doc = "project whose quota it counts for"},
    {.name = "pool",
     NB(OPT_NAMES, pool),
     .arg = "NAME",
     .to = "body:pool",
     .doc = "pool in which it may run"},
    {.name = "priority",
     NB(OPT_NUMBER, priority),
     .arg = "N",
     .to = "body:priority",
     .doc = "its priority in the queue"},
    {.name = "secrets",
     NB(OPT_NAMES, secrets),
     .arg = "NAME",
     .to = "body:secrets",
     .doc = "secrets of yours that its cells have in their environment"},
    {.name = "idle",
     NB(OPT_TEXT, idle),
     .arg = "SPAN",
     .to = "body:idle",
     .doc = "stop it after so long without use, 1h if not given; 0: never"},
    OPT_OUTPUT(struct notebook_opts),
};
static const struct opt LS_OPTS[] = {LISTING_OPTS};
#define OPT_WHOSE                                                                                  \
    {                                                                                              \
        .name = "user", .type = OPT_TEXT, .arg = "NAME", .to = "query:user",                       \
        .doc = "owner of the notebook (admins); you if not given"                                  \
    }
static const struct opt WHOSE_OPTS[] = {OPT_WHOSE};
static const struct opt SHOW_OPTS[] = {OPT_WHOSE, OPT_OUTPUT(struct listing_opts)};
static const struct opt FREEZE_OPTS[] = {
    {.name = "as",
     .type = OPT_TEXT,
     .arg = "NAME@VERSION",
     .to = "body:snapshot",
     .doc = "name of the snapshot; NOTEBOOK-packages@TIME if not given"},
};
static const struct opt EXTEND_OPTS[] = {
    OPT_WHOSE,
    {.name = "for",
     .type = OPT_TEXT,
     .arg = "SPAN",
     .to = "body:for",
     .doc = "so long; as long as its idle limit if not given"},
};

/* ---- tables ---- */

static void notebook_state(struct table *t, const json_t *item, const struct when *w)
{
    const char *state = member_str(item, "state");
    enum style style = str_eq(state, "READY")      ? STYLE_GREEN
                       : str_eq(state, "FAILED")   ? STYLE_RED
                       : str_eq(state, "STARTING") ? STYLE_CYAN
                                                   : STYLE_DIM;
    (void)w;
    table_add(t, style, state);
}

/* Why it does not run; of one that is to run, what interrupted it: of a stopped one that would say
 * that it starts again. */
static void notebook_reason(struct table *t, const json_t *item, const struct when *w)
{
    const char *why = json_get_str(json_get_object(item, "reason"), "text", NULL);
    const char *interruption = json_get_str(json_get_object(item, "interruption"), "text", NULL);
    bool is_to_run = json_get_str(item, "phase", NULL);
    (void)w;
    table_add(t, STYLE_PLAIN, why || !is_to_run ? why : interruption);
}

static void notebook_gpus(struct table *t, const json_t *item, const struct when *w)
{
    (void)w;
    table_addf(t, STYLE_PLAIN, "%g", json_get_real(item, "gpus", 0));
}

static const struct column NOTEBOOKS[] = {
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 8, .key = "name", .style = STYLE_BOLD},
    {.title = "say_state", .flags = COLUMN_FLEX, .least = 9, .draw = notebook_state},
    {.title = "say_notebook_phase", .flags = COLUMN_FLEX, .least = 6, .key = "phase", .rank = 3},
    {.title = "say_gpu_use", .flags = COLUMN_RIGHT, .draw = notebook_gpus},
    {.title = "say_node", .flags = COLUMN_FLEX, .least = 8, .key = "node"},
    {.title = "say_notebook_idle", .flags = COLUMN_FLEX, .least = 5, .key = "idle_for"},
    {.title = "say_notebook_stops", .flags = COLUMN_FLEX, .least = 5, .key = "stops_in", .rank = 1},
    {.title = "say_owner", .flags = COLUMN_FLEX, .least = 6, .key = "owner", .rank = 2},
    {.title = "say_job", .flags = COLUMN_FLEX, .least = 12, .key = "job", .rank = 3},
    {.title = "say_reason", .flags = COLUMN_ROOM, .draw = notebook_reason},
};

/* ---- start ---- */

static int notebook_start(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct notebook_opts *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    json_t *body = json_object();
    int r = ask_fill(START_OPTS, array_len(START_OPTS), o, body, err);
    if (r == 0 && args->n)
        (void)json_object_set_new(body, "name", json_string(args->v[0])); /* both are there */
    if (r == 0)
        r = cli_open(cli, err);
    if (r < 0) {
        json_decref(body);
        return r;
    }
    r = ask_send(cli, "POST", "/v1/notebooks", body, 1, &answer, err);
    if (r < 0)
        return r;
    const char *name = json_get_str(answer, "name", "");
    if (o->output >= OUTPUT_JSON) {
        cli_emit(cli, answer, o->output);
    } else {
        (void)fprintf(cli->out, "%s\n", name);
        cli_say(cli, "say_next_notebook", name, name, NULL);
    }
    return 0;
}

static void notebook_print(struct cli *cli, const json_t *answer, const struct seen *seen)
{
    (void)seen;
    cli_emit(cli, answer, OUTPUT_YAML);
}

static int notebook_url(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(freep) char *path = ask_path("/v1/notebooks/{}:open", args->n ? args->v[0] : "main");
    (void)opts;
    int r = cli_open(cli, err);
    if (r == 0)
        r = ask_send(cli, "POST", path, json_object(), 1, &answer, err);
    if (r == 0)
        (void)fprintf(cli->out, "%s\n", json_get_str(answer, "url", ""));
    return r;
}

static const struct command NOTEBOOK_COMMANDS[] = {
    {
        .name = "notebook start",
        .args = "[NAME]",
        .most = 1,
        .summary = "start a notebook: JupyterLab on a lease of its own",
        .text =
            "NAME is 'main' if not given. A stopped notebook starts as it was, except for the "
            "options that you give; its files, open tabs and installed packages are there again.\n"
            "It waits in the queue as any job does: 'argus notebook show NAME' says what for.",
        .example = "argus notebook start\twithout a GPU\n"
                   "argus notebook start big --gpus 1 --snapshot code@1\twith a GPU and code",
        OPTS(START_OPTS),
        .opts_size = sizeof(struct notebook_opts),
        .run = notebook_start,
    },
    {
        .name = "notebook ls",
        .args = "",
        .summary = "list the notebooks",
        .text = "Lists your notebooks; admins see all.",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/notebooks",
                .table = {.key = "notebooks", COLUMNS(NOTEBOOKS), .none = "say_no_notebooks"}},
    },
    {
        .name = "notebook show",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "show a notebook, and what it waits for",
        .text = "Shows how far its start has come, its machine, its job, what interrupted it, and "
                "how long nothing has happened in it.",
        OPTS(SHOW_OPTS),
        .ask = {.path = "/v1/notebooks/{}", .print = notebook_print},
    },
    {
        .name = "notebook url",
        .args = "[NAME]",
        .most = 1,
        .summary = "print an address that opens a notebook in a browser",
        .text = "The address works once, within a minute; whoever has it opens the notebook as "
                "you.",
        .run = notebook_url,
    },
    {
        .name = "notebook extend",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "do not stop a notebook as idle for a while",
        .text =
            "Its owner is told before it is stopped: a quarter of the limit, ten minutes at most.",
        OPTS(EXTEND_OPTS),
        .ask = {.method = "POST",
                .path = "/v1/notebooks/{}:extend",
                .done = "say_done_changed",
                .subject = "notebook {name}"},
    },
    {
        .name = "notebook freeze",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "keep the packages of a notebook as a snapshot that jobs use",
        .text = "The snapshot has what you installed in the notebook (%pip install), and their "
                "exact versions in argus-packages.txt. A job whose working_dir is the snapshot "
                "imports them. The notebook may run meanwhile, but not install.",
        .example = "argus notebook freeze main --as tools@1\tworking_dir: tools@1 in a JobSpec",
        OPTS(FREEZE_OPTS),
        .ask = {.method = "POST",
                .path = "/v1/notebooks/{}:freeze",
                .done = "say_done_made",
                .subject = "snapshot {name}"},
    },
    {
        .name = "notebook stop",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "stop a notebook",
        .text = "Kernels end; files, open tabs and installed packages stay.",
        OPTS(WHOSE_OPTS),
        .ask = {.method = "POST",
                .path = "/v1/notebooks/{}:stop",
                .done = "say_done_stopped",
                .subject = "notebook {name}"},
    },
    {
        .name = "notebook rm",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "forget a notebook that is stopped",
        .text = "Its files stay in your directory.",
        OPTS(WHOSE_OPTS),
        .ask = {.method = "DELETE",
                .path = "/v1/notebooks/{}",
                .done = "say_done_removed",
                .subject = "notebook {name}"},
    },
};

NOUN(notebook, NOTEBOOK_COMMANDS);
