/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - is argusd well, as it finds itself (GET /v1/doctor); with --services the services
 * beside it: each of a file of checks is asked over HTTP.
 *
 * The file is the list (deploy/observe/health.yaml has all that deploy/observe can bring up): what
 * a site does not have, its copy leaves out. Nothing of ours is sent there, no token and no body,
 * and no redirect is followed. One line each, and the worst of them is the exit status. */
#include "argus/noun/noun.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "argus/cli/ask.h"
#include "argus/net/client.h"
#include "argus/show/table.h"
#include "base/doc/doc.h"
#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { DOCTOR_FILE_MAX = 64 << 10, DOCTOR_CHECKS_MAX = 100, DOCTOR_SAID_MAX = 300 };

struct doctor_opts {
    const char *services;
    int output;
};

static const struct opt DOCTOR_OPTS[] = {
    {.name = "services",
     .type = OPT_TEXT,
     .offset = offsetof(struct doctor_opts, services),
     .arg = "FILE",
     .doc = "the checks: those of deploy/observe/health.yaml that there are here"},
    OPT_OUTPUT(struct doctor_opts),
};

static const struct column DOCTOR_COLUMNS[] = {
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 8, .key = "name"},
    {.title = "say_state", .key = "state"},
    {.title = "say_url", .flags = COLUMN_FLEX, .least = 12, .key = "url", .rank = 2},
    {.title = "say_reason", .key = "reason", .flags = COLUMN_ROOM},
    {.title = "say_advice", .key = "fix", .flags = COLUMN_FLEX, .least = 20, .rank = 1},
};
static const struct column DOCTOR_OWN[] = {
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 8, .key = "name"},
    {.title = "say_state", .key = "state"},
    {.title = "say_reason", .key = "text", .flags = COLUMN_ROOM},
    {.title = "say_advice", .key = "fix", .flags = COLUMN_FLEX, .least = 20, .rank = 1},
};

static const char *doctor_text(const struct node *check, const char *key, const char *without)
{
    const struct node *n = node_find(check, key);
    return n && n->kind == NODE_SCALAR && !node_is_null(n) ? n->text : without;
}

/* What it answered, held against what the check wants; "" = it is well. */
static void doctor_judge(const struct node *check,
                         const struct response *got,
                         char *ret,
                         size_t max)
{
    const char *body = doctor_text(check, "body", "");
    int64_t want = 200;
    if (str_to_int(doctor_text(check, "status", "200"), 100, 599, &want, NULL) < 0)
        want = 200;
    text_copy_to(ret, max, "");
    if (got->status != want)
        text_printf_to(ret, max, "it answers with HTTP status %d", got->status);
    else if (*body && (!got->body.len || !strstr(buf_str(&got->body), body)))
        text_printf_to(ret, max, "its answer does not say '%.40s'", body);
}

/* One check; the sentence of what is wrong, "" = nothing. */
static int doctor_ask(const struct node *check, char *ret, size_t max, struct err *err)
{
    _cleanup_(settings_release) struct settings to = {0};
    struct err why = {0};
    struct response got = {.body = BUF_INIT(DOCTOR_FILE_MAX)};
    int r = settings_tidy_url(doctor_text(check, "url", ""), &to.server, err);
    if (r < 0)
        return r;
    struct client *c = client_new(&to);
    r = client_call(c, &(struct request){.path = doctor_text(check, "path", "/"), .accept = "*/*"},
                    &got, &why);
    if (r < 0)
        text_copy_to(ret, max, why.text);
    else
        doctor_judge(check, &got, ret, max);
    response_release(&got);
    client_free(c);
    return r == -EINTR ? err_set(err, r, "interrupted") : 0;
}

static int doctor_check(const struct node *check, json_t *rows, bool *ret_well, struct err *err)
{
    char said[DOCTOR_SAID_MAX];
    const char *name = doctor_text(check, "name", NULL);
    if (!name || !doctor_text(check, "url", NULL))
        return message_refuse(err, ERR_USAGE, "cli_doctor_check",
                              MESSAGE_ARGS(MESSAGE_NUM("line", check->line)));
    int r = doctor_ask(check, said, sizeof(said), err);
    if (r < 0)
        return r;
    *ret_well = !*said;
    json_t *row = json_pack("{s:s, s:s, s:s}", "name", name, "state", *said ? "away" : "well",
                            "url", doctor_text(check, "url", ""));
    if (*said) {
        (void)json_object_set_new(row, "reason", json_string(said)); /* rows are whole without */
        (void)json_object_set_new(row, "fix", json_string(doctor_text(check, "fix", "")));
    }
    (void)json_array_append_new(rows, row);
    return 0;
}

/* How many are not well, or a refusal of the file. */
static int doctor_check_all(const struct node *root, json_t *rows, struct err *err)
{
    const struct node *checks = node_find(root, "checks");
    int ill = 0;
    if (!checks || checks->kind != NODE_SEQ || checks->n > DOCTOR_CHECKS_MAX)
        return message_refuse(err, ERR_USAGE, "cli_doctor_checks",
                              MESSAGE_ARGS(MESSAGE_NUM("most", DOCTOR_CHECKS_MAX)));
    for (const struct node *c = checks->first; c; c = c->next) {
        bool well = false;
        int r = doctor_check(c, rows, &well, err);
        if (r < 0)
            return r;
        ill += !well;
    }
    return ill;
}

static void doctor_show_table(struct cli *cli,
                              const struct doctor_opts *o,
                              struct table *t,
                              const json_t *rows)
{
    struct when w = cli_when(cli, false);
    size_t i;
    json_t *row;
    json_array_foreach (rows, i, row)
        table_add_item(t, row, &w);
    (void)table_print(t, &cli->term, o->output == OUTPUT_WIDE, cli->out); /* reason and fix stay */
}

static void doctor_show(struct cli *cli, const struct doctor_opts *o, json_t *rows)
{
    if (o->output >= OUTPUT_JSON) {
        _cleanup_(json_unrefp) json_t *page = json_pack("{s:O}", "services", rows);
        cli_emit(cli, page, o->output);
        return;
    }
    _cleanup_(table_freep) struct table *t = table_new(DOCTOR_COLUMNS, array_len(DOCTOR_COLUMNS));
    doctor_show_table(cli, o, t, rows);
}

/* What argusd finds of itself. */
static int doctor_of_argusd(struct cli *cli, const struct doctor_opts *o, struct err *err)
{
    _cleanup_(json_unrefp) json_t *page = NULL;
    _cleanup_(table_freep) struct table *t = NULL;
    int r = cli_open(cli, err);
    if (r == 0)
        r = ask_send(cli, NULL, "/v1/doctor", NULL, 0, &page, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON) {
        cli_emit(cli, page, o->output);
    } else {
        t = table_new(DOCTOR_OWN, array_len(DOCTOR_OWN));
        doctor_show_table(cli, o, t, json_get_array(page, "checks"));
    }
    return json_is_true(json_object_get(page, "ill"));
}

static int doctor_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct doctor_opts *o = opts;
    _cleanup_(buf_release) struct buf text = BUF_INIT(DOCTOR_FILE_MAX);
    _cleanup_(doc_freep) struct doc *doc = NULL;
    _cleanup_(json_unrefp) json_t *rows = json_array();
    struct problems ps = {0};
    (void)args;
    if (!o->services)
        return doctor_of_argusd(cli, o, err);
    int r = file_read_input(o->services, &text, err);
    if (r == 0 && doc_parse(buf_str(&text), text.len, true, &doc, &ps) < 0)
        r = problems_to_err(&ps, o->services, ERR_USAGE, err);
    problems_release(&ps);
    if (r == 0)
        r = doctor_check_all(doc_root(doc), rows, err);
    if (r < 0)
        return r;
    doctor_show(cli, o, rows);
    return r ? err_exit_status(ERR_UNREACHABLE) : 0;
}

static const struct command DOCTOR_COMMANDS[] = {
    {
        .name = "doctor",
        .args = "",
        .summary = "ask whether argusd is well, or the services beside it",
        .text = "What argusd finds of itself, one line each with what to do, for admins: the "
                "store, Ray, the shared root and a small test of it, the room on disks, clocks, "
                "ports and versions of the machines, argusd's certificate, tokens that end soon, "
                "receivers that take no message, the trackers that argus.yaml names, and who takes "
                "the metrics. Exit status 1 if one is ill. With --services: Prometheus, "
                "Alertmanager, Grafana, MLflow and W&B as the file of --services names them: each "
                "is asked at its address, and one that does not answer as it should comes with "
                "what to do. The file is deploy/observe/health.yaml, or a copy with those that "
                "there are and their addresses. Exit status 6 if one is away.",
        .example = "argus doctor\targusd itself\n"
                   "argus doctor --services deploy/observe/health.yaml\tone line each",
        .opts = DOCTOR_OPTS,
        .n_opts = array_len(DOCTOR_OPTS),
        .opts_size = sizeof(struct doctor_opts),
        .run = doctor_run,
    },
};

NOUN(doctor, DOCTOR_COMMANDS);
