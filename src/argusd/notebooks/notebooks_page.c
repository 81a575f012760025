/* SPDX-License-Identifier: Apache-2.0 */
/* notebooks_page.c - /v1/notebooks: list, look, start, stop, extend, open, remove.
 *
 * A notebook is found among those of who asks, or (?user=) of somebody else. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/routes.h"
#include "argusd/kit/resource.h"
#include "argusd/kit/saying.h"
#include "argusd/notebooks/notebooks.h"
#include "argusd/notebooks/notebooks_door.h"
#include "base/doc/conf.h"
#include "base/doc/doc.h"
#include "base/message.h"
#include "base/str.h"

enum { EXTEND_DAYS = 7 };

/* ---- the page ---- */

struct notebook_page {
    struct notebook n; /* borrowed */
    const char *state, *phase, *node;
    char *reason, *interruption; /* JSON */
    int64_t kernels, terminals;
    bool busy;
    usec_t idle_for, stops_in;
};
enum { EVERYWHERE = FIELD_SHOWN | FIELD_LISTED };
#define P(key, ftype, member, ...) FIELD_AT(notebook_page, key, ftype, member, __VA_ARGS__)
static const struct field page_rows[] = {
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct notebook_page, n),
     .of = &notebook_table,
     .flags = FIELD_BORROWED},
    P("state",
      FIELD_STR,
      state,
      .flags = EVERYWHERE | FIELD_ALWAYS | FIELD_BORROWED,
      .doc = "STOPPED, WAITING for its lease, STARTING, READY, STOPPING, FAILED"),
    P("reason",
      FIELD_JSON,
      reason,
      .schema = REF_OR_NULL("Reason"),
      .flags = EVERYWHERE,
      .doc = "what it waits for, or why it ended"),
    P("phase",
      FIELD_STR,
      phase,
      .flags = EVERYWHERE | FIELD_BORROWED,
      .doc = "how far its start has come: queued, placed on a machine, environment (packages are "
             "prepared), server (JupyterLab starts), ready; null: it is not to run"),
    P("interruption",
      FIELD_JSON,
      interruption,
      .schema = REF_OR_NULL("Reason"),
      .flags = EVERYWHERE,
      .doc = "what interrupted it last, while it was to run: its machine was lost or taken back"),
    P("node", FIELD_STR, node, .flags = EVERYWHERE | FIELD_BORROWED),
    P("kernels", FIELD_INT, kernels, .flags = EVERYWHERE),
    P("terminals", FIELD_INT, terminals, .flags = EVERYWHERE),
    P("busy", FIELD_BOOL, busy, .flags = EVERYWHERE, .doc = "a kernel works"),
    P("idle_for",
      FIELD_SPAN,
      idle_for,
      .flags = EVERYWHERE,
      .doc = "since kernels, terminals, their processes or its GPUs did something"),
    P("stops_in",
      FIELD_SPAN,
      stops_in,
      .flags = EVERYWHERE,
      .doc = "until it is stopped, if nothing happens; 0: it is not"),
};
static const struct field_table page_table = {.name = "Notebook",
                                              .rows = page_rows,
                                              .n = array_len(page_rows),
                                              .size = sizeof(struct notebook_page)};

/* As JSON; NULL: there is nothing to say. */
static char *notebook_page_say(const struct resource_ask *q, const char *code, const char *text)
{
    const struct api_eyes eyes = {.a = q->a, .p = http_req_principal(q->req)};
    struct said said = {0};
    if (!code || !*code)
        return NULL;
    saying_say(&eyes, NULL, code, str_or(text, ""), &said);
    char *json = field_to_text(&said_table, &said, FIELD_ALL, FIELD_PAGE);
    said_release(&said);
    return json;
}

static void notebook_fill(struct resource_ask *q, const void *object, void *out)
{
    const struct noted *x = object;
    struct notebook_page *page = out;
    usec_t now = clock_mono();
    enum notebook_state state = notebook_state_of(x);
    page->n = x->n;
    page->state = notebook_state_words[state];
    enum notebook_phase phase = notebook_phase_of(x);
    page->phase = phase == NOTEBOOK_PHASE_NONE ? NULL : notebook_phase_words[phase];
    page->node = x->node;
    page->kernels = x->report.kernels;
    page->terminals = x->report.terminals;
    page->busy = x->report.is_busy;
    page->idle_for =
        state == NOTEBOOK_READY && x->active_at && x->active_at < now ? now - x->active_at : 0;
    page->stops_in = state == NOTEBOOK_READY ? x->left : 0;
    if (!q->is_trail)
        page->interruption = notebook_page_say(q, x->n.interrupted_code, x->n.interrupted_text);
    if (q->is_trail || state == NOTEBOOK_READY)
        return;
    page->reason = x->n.wanted ? notebook_page_say(q, x->reason.code, x->reason.text)
                               : notebook_page_say(q, x->n.code, x->n.text);
}

/* ---- finding ---- */

static const void *notebook_next(struct resource_ask *q, size_t *pos)
{
    return notebooks_next(q->a->notebooks, pos);
}

static int notebook_compare(const void *a, const void *b)
{
    const struct noted *x = *(const struct noted *const *)a;
    const struct noted *y = *(const struct noted *const *)b;
    int r = strcmp(x->n.owner, y->n.owner);
    return r ? r : strcmp(x->n.name, y->n.name);
}

static const void *notebook_find(struct resource_ask *q, const void *asked)
{
    const char *owner = str_or(http_req_query(q->req, "user"), q->who.user);
    (void)asked;
    return notebooks_find(q->a->notebooks, owner, q->name);
}

static void notebook_ask_thing(struct resource_ask *q,
                               const void *x,
                               const void *asked,
                               struct access_thing *ret)
{
    (void)asked;
    if (x)
        *ret = notebook_thing(&((const struct noted *)x)->n);
    else
        *ret = (struct access_thing){
            .kind = ACCESS_KIND_NOTEBOOK, .name = q->name, .owner = q->who.user};
}

static const struct resource notebook_noun = {
    .noun = "notebook",
    .kind = ACCESS_KIND_NOTEBOOK,
    .collection = "notebooks",
    .param = "name",
    .page = &page_table,
    .item = FIELD_LISTED,
    .trail = FIELD_LISTED,
    .form = &notebook_table,
    .may_see = ACCESS_NOTEBOOK_SEE,
    .may_change = ACCESS_NOTEBOOK_CHANGE,
    .next = notebook_next,
    .compare = notebook_compare,
    .find = notebook_find,
    .thing = notebook_ask_thing,
    .fill = notebook_fill,
};

/* ---- start ---- */

/* What is not said of one that is there already, stays. */
static int notebook_read_form(struct resource_ask *q,
                              const struct noted **ret_old,
                              struct notebook *asked)
{
    struct doc *d = NULL;
    size_t n;
    const char *body = http_req_body(q->req, &n);
    if (doc_parse(n ? body : "{}", n ? n : 2, n > 0, &d, &q->problems) == 0) {
        const struct node *name = node_find(doc_root(d), "name");
        const char *word = name && name->text ? name->text : "main";
        const struct noted *old = notebooks_find(q->a->notebooks, q->who.user, word);
        if (old)
            field_assign(&notebook_table, asked, &old->n, FIELD_ASKED);
        conf_read_table(&notebook_table, FIELD_ASKED, old != NULL, doc_root(d), asked,
                        &q->problems);
        *ret_old = old;
    }
    doc_free(d);
    return q->problems.errors ? ERR_BAD_SPEC : 0;
}

static int notebook_begin(struct resource_ask *q, const struct noted **ret)
{
    struct notebook asked = {0};
    const struct noted *old = NULL;
    int r = notebook_read_form(q, &old, &asked);
    set_str(&asked.owner, q->who.user);
    if (r == 0)
        r = notebook_check(&asked, &q->err);
    if (r == 0)
        r = access_check_submit(&q->who, asked.project, &q->err);
    if (r == 0)
        r = notebooks_run(q->a->notebooks, old, &asked, ret, &q->err);
    field_release(&notebook_table, &asked);
    return r;
}

static void notebook_start(struct http_req *req, void *app)
{
    struct resource_ask q;
    const struct noted *x = NULL;
    resource_begin(&q, req, app);
    if (resource_can_store(&q) < 0 ||
        resource_may(&q, RESOURCE_TO_CHANGE, "start", NULL, NULL) < 0 || notebook_begin(&q, &x) < 0)
        resource_refuse(&q);
    else
        resource_reply(&q, x, 201, api_barrier(q.a));
    resource_end(&q);
}

/* ---- the other actions ---- */

static const struct field extend_form_rows[] = {SAYS("for", FIELD_STR, .flags = 0)};
static const struct field_table extend_form = ACTION_FORM(extend_form_rows);

static int notebook_do_extend(struct resource_ask *q, const struct noted *x, const json_t *body)
{
    const char *text = json_get_str(body, "for", NULL);
    usec_t span = x->n.idle;
    if ((text && span_from_string(text, &span, NULL) < 0) || span < USEC_MIN ||
        span > EXTEND_DAYS * USEC_DAY)
        return message_refuse(&q->err, ERR_BAD_REQUEST, "notebook_extend",
                              MESSAGE_ARGS(MESSAGE_NUM("days", EXTEND_DAYS)));
    notebooks_extend(q->a->notebooks, x, span, q->who.user);
    return 0;
}

static int notebook_do_stop(struct resource_ask *q, const struct noted *x, const json_t *body)
{
    (void)body;
    notebooks_stop(q->a->notebooks, x, q->who.user, NULL, NULL);
    return 0;
}

struct notebook_action {
    const struct field_table *form; /* NULL: it has no member */
    const char *verb;
    int (*act)(struct resource_ask *q, const struct noted *x, const json_t *body);
};

static void notebook_act(struct http_req *req, struct api *a, const struct notebook_action *what)
{
    struct resource_ask q;
    resource_begin(&q, req, a);
    q.of = &notebook_noun;
    const struct noted *x = resource_find(&q, RESOURCE_TO_CHANGE, what->verb);
    _cleanup_(json_unrefp) json_t *body = NULL;
    if (!x)
        resource_refuse(&q);
    else if ((body = api_read_action(req, what->form))) {
        if (what->act(&q, x, body) < 0)
            resource_refuse(&q);
        else
            resource_reply(&q, x, 200, api_barrier(q.a));
    }
    resource_end(&q);
}

static void notebook_extend(struct http_req *req, void *app)
{
    static const struct notebook_action what = {&extend_form, "extend", notebook_do_extend};
    notebook_act(req, app, &what);
}

static void notebook_stop(struct http_req *req, void *app)
{
    static const struct notebook_action what = {NULL, "stop", notebook_do_stop};
    notebook_act(req, app, &what);
}

static void notebook_remove(struct http_req *req, void *app)
{
    struct resource_ask q;
    struct buf out = BUF_INIT(RESOURCE_BODY_MAX);
    resource_begin(&q, req, app);
    const struct noted *x = resource_find(&q, RESOURCE_TO_CHANGE, "remove");
    char *page = x ? resource_trail(&q, x) : NULL;
    if (!x || notebooks_remove(q.a->notebooks, x, &q.err) < 0) {
        resource_refuse(&q);
    } else {
        buf_adds(&out, page);
        http_reply_json(req, 200, &out, api_barrier(q.a));
    }
    free(page);
    resource_end(&q);
}

/* ---- routes ---- */

static const struct http_param whose[] = {
    {"user", HTTP_PARAM_STRING, "owner of the notebook; you if not given"},
    {NULL, 0, NULL}};
#define ABOUT .params = whose
static const struct http_route rows[] = {
    RESOURCE_LIST(&notebook_noun,
                  "/v1/notebooks",
                  VIEWER,
                  "notebooks: yours, or all",
                  .reply_schema = "NotebookList"),
    RESOURCE_ROUTE(
        "POST",
        notebook_start,
        &notebook_noun,
        "/v1/notebooks",
        USER,
        "start a notebook: a new one, or one that is stopped, as it was but for what is said",
        .max_body = RESOURCE_BODY_MAX,
        .request_schema = "NotebookForm",
        .reply_schema = "Notebook",
        .reply_status = 201),
    RESOURCE_GET(&notebook_noun,
                 "/v1/notebooks/{name}",
                 USER,
                 "one notebook",
                 ABOUT,
                 .reply_schema = "Notebook",
                 .example = "main"),
    RESOURCE_ROUTE("DELETE",
                   notebook_remove,
                   &notebook_noun,
                   "/v1/notebooks/{name}",
                   USER,
                   "forget a notebook that is stopped; its files stay",
                   ABOUT,
                   .reply_schema = "NotebookItem"),
    RESOURCE_ROUTE("POST",
                   notebook_stop,
                   &notebook_noun,
                   "/v1/notebooks/{name}:stop",
                   USER,
                   "stop a notebook; its files and open tabs are there at its next start",
                   ABOUT,
                   .max_body = RESOURCE_BODY_MAX,
                   .reply_schema = "Notebook"),
    RESOURCE_ROUTE("POST",
                   notebook_extend,
                   &notebook_noun,
                   "/v1/notebooks/{name}:extend",
                   USER,
                   "do not stop it as idle for so long",
                   ABOUT,
                   .max_body = RESOURCE_BODY_MAX,
                   .request_schema = "NotebookExtendForm",
                   .reply_schema = "Notebook"),
    {.method = "POST",
     .pattern = "/v1/notebooks/{name}:open",
     .least = HTTP_ROLE_USER,
     .handle = notebooks_open_door,
     .params = whose,
     .max_body = RESOURCE_BODY_MAX,
     .summary = "an address that opens it in a browser: once, within a minute",
     .reply_schema = "NotebookAddress"},
};
static const struct http_schema schemas[] = {
    {.name = "NotebookForm", .table = &notebook_table, .which = FIELD_ASKED, .is_form = true},
    {.name = "NotebookExtendForm", .table = &extend_form, .is_form = true},
    {.name = "NotebookAddress", .json = OBJECT("\"url\"", KEY("url", TEXT))},
    {.name = "Notebook", .table = &page_table, .which = FIELD_SHOWN},
    {.name = "NotebookItem", .table = &page_table, .which = FIELD_LISTED},
    LIST_OF("NotebookList", "notebooks", "NotebookItem"),
};
const struct api_part part_notebooks_page = {rows, array_len(rows), schemas, array_len(schemas)};
