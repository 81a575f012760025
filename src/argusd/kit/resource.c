/* SPDX-License-Identifier: Apache-2.0 */
/* resource.c - the seven steps of every noun: find, may, read, check, do, note, reply.
 *
 * A change and its event are made in one turn of the loop, and the reply waits for both to be on
 * disk. A page is made from a copy of the object (fill), and thrown away with it. */
#include "argusd/kit/resource.h"

#include <stdlib.h>
#include <string.h>

#include "base/doc/conf.h"
#include "base/str.h"
#include "base/text.h"

enum { PAGE_MAX = 1 << 20, LIST_MAX = 32 << 20 };

void resource_begin_of(struct resource_ask *q,
                       const struct resource *of,
                       struct http_req *req,
                       struct api *a)
{
    *q = (struct resource_ask){.of = of, .req = req, .a = a};
    people_who(a->people, http_req_principal(req), &q->who);
}

void resource_begin(struct resource_ask *q, struct http_req *req, void *app)
{
    resource_begin_of(q, http_req_arg(req), req, app);
    if (q->of->param)
        q->name = http_req_param(req, q->of->param);
}

void resource_end(struct resource_ask *q)
{
    problems_release(&q->problems);
    freep(&q->own);
}

void resource_refuse(struct resource_ask *q)
{
    if (q->problems.errors)
        api_answer_problems(q->req, &q->problems);
    else
        http_problem(q->req, q->err.code, &q->err, q->field, NULL, api_reader_barrier(q->a));
}

/* ---- finding, and who may ---- */

static struct access_thing resource_thing_asked(struct resource_ask *q,
                                                const void *x,
                                                const void *asked)
{
    struct access_thing thing = {.kind = q->of->kind, .name = "new"};
    if (q->of->thing)
        q->of->thing(q, x, asked, &thing);
    return thing;
}

struct access_thing resource_thing(struct resource_ask *q, const void *x)
{
    return resource_thing_asked(q, x, NULL);
}

static int resource_ask_access(struct resource_ask *q,
                               enum access_action action,
                               const char *verb,
                               const void *x,
                               const void *asked)
{
    if (q->of->may && x)
        return q->of->may(q, action, verb, x);
    struct access_thing thing = resource_thing_asked(q, x, asked);
    return access_check(&q->who, action, verb, &thing, &q->err);
}

bool resource_sees(struct resource_ask *q, const void *x)
{
    struct err before = q->err;
    bool sees = resource_ask_access(q, q->of->may_see, "see", x, NULL) == 0;
    q->err = before;
    return sees;
}

int resource_can_store(struct resource_ask *q)
{
    return store_check(q->a->store, &q->err);
}

int resource_may(struct resource_ask *q,
                 enum resource_need need,
                 const char *verb,
                 const void *x,
                 const void *asked)
{
    bool changes = need == RESOURCE_TO_CHANGE;
    int r = resource_ask_access(q, changes ? q->of->may_change : q->of->may_see, verb, x, asked);
    return r == 0 && changes ? resource_can_store(q) : r;
}

const void *resource_find(struct resource_ask *q, enum resource_need need, const char *verb)
{
    const void *x = q->of->find(q, NULL);
    if (!x && !q->err.code)
        (void)message_refuse(&q->err, ERR_NOT_FOUND, "not_found",
                             MESSAGE_ARGS(MESSAGE_STR("noun", q->of->noun),
                                          MESSAGE_STR("name", q->name))); /* only fills err */
    return x && resource_may(q, need, verb, x, NULL) == 0 ? x : NULL;
}

/* ---- showing ---- */

static void resource_put_page(struct resource_ask *q, const void *x, unsigned which, struct jout *j)
{
    const struct field_table *t = q->of->page;
    _cleanup_(freep) void *page = q->of->fill ? xcalloc(1, t->size) : NULL;
    if (page)
        q->of->fill(q, x, page);
    field_to_json(t, page ? page : x, which ? which : FIELD_SHOWN, FIELD_PAGE, j, NULL);
    if (page)
        field_release(t, page);
}

static void resource_write_page(struct resource_ask *q, const void *x, struct buf *out)
{
    struct jout j = jout_begin(out);
    people_who(q->a->people, http_req_principal(q->req), &q->who); /* he may have changed */
    resource_put_page(q, x, FIELD_SHOWN, &j);
}

void resource_reply(struct resource_ask *q, const void *x, int status, uint64_t barrier)
{
    struct buf out = BUF_INIT(PAGE_MAX);
    resource_write_page(q, x, &out);
    http_reply_json(q->req, status, &out, barrier);
    buf_release(&out);
}

char *resource_trail(struct resource_ask *q, const void *x)
{
    if (q->of->tell)
        return q->of->tell(x);
    struct buf out = BUF_INIT(PAGE_MAX);
    struct jout j = jout_begin(&out);
    q->is_trail = true;
    resource_put_page(q, x, q->of->trail, &j);
    q->is_trail = false;
    return buf_take(&out);
}

void resource_say(struct resource_ask *q, const char *code, const struct message_arg *args)
{
    q->said_code = code;
    message_write(q->said, sizeof(q->said), args);
}

void resource_note(struct resource_ask *q,
                   const struct resource_act *act,
                   const void *x,
                   char *before_taken,
                   char *after_taken)
{
    q->is_trail = true;
    struct access_thing thing = resource_thing(q, x);
    q->is_trail = false;
    _cleanup_(freep) char *before = before_taken, *after = after_taken;
    _cleanup_(freep) char *object =
        q->of->object ? q->of->object(x)
                      : xasprintf("%s/%s", access_kind_to_string(thing.kind), thing.name);
    struct events_note note = {.thing = &thing,
                               .kind = act->kind,
                               .actor = http_req_principal(q->req)->user,
                               .object = object,
                               .code = q->said_code,
                               .text = q->said,
                               .before = before,
                               .after = after};
    if (act->kind)
        events_add(q->a->events, &note, clock_wall());
}

/* ---- reading ---- */

struct resource_items {
    const void **v;
    size_t n, room;
};

/* most: how many, of a list that is cut; *pos: from which on, and behind the last one then. */
static void resource_collect(struct resource_ask *q,
                             size_t most,
                             size_t *pos,
                             struct resource_items *ret)
{
    const void *x;
    while (ret->n < most && (x = q->of->next(q, pos))) {
        if ((q->of->wants && !q->of->wants(q, x)) || !resource_sees(q, x))
            continue;
        if (ret->n == ret->room) {
            ret->room = ret->room ? 2 * ret->room : 64;
            ret->v = xrealloc(ret->v, ret->room, sizeof(*ret->v));
        }
        ret->v[ret->n++] = x;
    }
    if (q->of->compare)
        xsort(ret->v, ret->n, sizeof(*ret->v), q->of->compare);
}

/* Some may not see what comes behind: then the last page is empty. */
static void resource_put_cursor(struct resource_ask *q, size_t pos, struct jout *j)
{
    size_t behind = pos;
    char text[24];
    text_printf(text, "%zu", pos);
    jout_str(j, "next_cursor", q->of->next(q, &behind) ? text : NULL);
}

static void resource_answer_list(struct resource_ask *q, size_t most, size_t pos)
{
    struct resource_items items = {0};
    struct buf out = BUF_INIT(LIST_MAX);
    struct jout j = jout_begin(&out);
    resource_collect(q, most, &pos, &items);
    jout_open(&j, NULL, '{');
    jout_open(&j, q->of->collection, '[');
    for (size_t i = 0; i < items.n; i++)
        resource_put_page(q, items.v[i], q->of->item, &j);
    jout_close(&j, ']');
    if (q->of->flags & RESOURCE_PAGES)
        resource_put_cursor(q, pos, &j);
    jout_close(&j, '}');
    http_reply_json(q->req, 200, &out, api_reader_barrier(q->a));
    buf_release(&out);
    free(items.v);
}

void resource_list(struct http_req *req, void *app)
{
    struct resource_ask q;
    int64_t most = INT64_MAX, from = 0;
    resource_begin(&q, req, app);
    int r = q.of->check_list ? q.of->check_list(&q) : 0;
    if (r == 0 && q.of->flags & RESOURCE_CUT)
        r = http_req_query_int(req, "limit", 1, RESOURCE_SHOWN_MAX, RESOURCE_SHOWN, &most, &q.err);
    if (r == 0 && q.of->flags & RESOURCE_PAGES)
        r = http_req_query_int(req, "cursor", 0, INT64_MAX, 0, &from, &q.err);
    if (r < 0)
        resource_refuse(&q);
    else
        resource_answer_list(&q, (size_t)most, (size_t)from);
    resource_end(&q);
}

void resource_get(struct http_req *req, void *app)
{
    struct resource_ask q;
    resource_begin(&q, req, app);
    const void *x = resource_find(&q, RESOURCE_TO_SEE, "see");
    if (x)
        resource_reply(&q, x, 200, api_reader_barrier(q.a));
    else
        resource_refuse(&q);
    resource_end(&q);
}

/* ---- changing ---- */

int resource_read_form(struct resource_ask *q, bool is_change, void *asked)
{
    struct doc *d = NULL;
    size_t n;
    const char *body = http_req_body(q->req, &n);
    /* An empty body is an empty object. */
    if (doc_parse(n ? body : "{}", n ? n : 2, n > 0, &d, &q->problems) == 0)
        conf_read_table(q->of->form, FIELD_ASKED, is_change, doc_root(d), asked, &q->problems);
    doc_free(d);
    return q->problems.errors ? ERR_BAD_SPEC : 0;
}

enum resource_how { RESOURCE_HOW_ADD, RESOURCE_HOW_CHANGE, RESOURCE_HOW_PUT };

/* Whatever can be refused before anything is done. *ret_old: what there is already. */
static int resource_prepare(struct resource_ask *q,
                            enum resource_how how,
                            const void **ret_old,
                            void *asked)
{
    const struct resource *of = q->of;
    bool makes = how == RESOURCE_HOW_ADD || (how == RESOURCE_HOW_PUT && of->add.verb);
    if (!makes && !(*ret_old = resource_find(q, RESOURCE_TO_CHANGE, of->change.verb)))
        return q->err.code;
    if (how == RESOURCE_HOW_CHANGE)
        field_assign(of->form, asked, *ret_old, FIELD_STORED);
    bool is_change = how == RESOURCE_HOW_CHANGE;
    int r = of->read ? of->read(q, is_change, asked) : resource_read_form(q, is_change, asked);
    if (r == 0 && makes && how == RESOURCE_HOW_PUT)
        *ret_old = of->find(q, asked);
    if (r == 0 && makes)
        r = resource_may(q, RESOURCE_TO_CHANGE, of->add.verb, *ret_old, asked);
    if (r == 0 && of->check)
        r = of->check(q, *ret_old, asked);
    return r;
}

static void resource_do(struct resource_ask *q, const void *old, void *asked)
{
    char *before = old ? resource_trail(q, old) : NULL;
    const void *x = q->of->write(q, old, asked);
    if (!x) {
        free(before);
        resource_refuse(q);
        return;
    }
    resource_note(q, old ? &q->of->change : &q->of->add, x, before, resource_trail(q, x));
    if (q->of->after)
        q->of->after(q, x);
    resource_reply(q, x, old ? 200 : 201, api_barrier(q->a));
}

static void resource_write(struct http_req *req, void *app, enum resource_how how)
{
    struct resource_ask q;
    const void *old = NULL;
    resource_begin(&q, req, app);
    _cleanup_(freep) void *asked = xcalloc(1, q.of->form->size);
    field_clear_limits(q.of->form, asked);
    if (resource_prepare(&q, how, &old, asked) < 0)
        resource_refuse(&q);
    else
        resource_do(&q, old, asked);
    field_release(q.of->form, asked);
    resource_end(&q);
}

void resource_add(struct http_req *req, void *app)
{
    resource_write(req, app, RESOURCE_HOW_ADD);
}

void resource_change(struct http_req *req, void *app)
{
    resource_write(req, app, RESOURCE_HOW_CHANGE);
}

void resource_put(struct http_req *req, void *app)
{
    resource_write(req, app, RESOURCE_HOW_PUT);
}

/* ---- removing ---- */

/* What stays is shown as it is then. */
static void resource_end_one(struct resource_ask *q, const void *x, struct buf *out)
{
    char *before = resource_trail(q, x);
    if (q->of->take_away(q, x))
        resource_note(q, &q->of->remove, x, before,
                      q->of->flags & RESOURCE_ENDS ? resource_trail(q, x) : NULL);
    else
        free(before);
    resource_write_page(q, x, out);
}

static void resource_do_remove(struct resource_ask *q, const void *x)
{
    struct buf out = BUF_INIT(PAGE_MAX);
    if (q->of->flags & RESOURCE_STAYS) {
        resource_end_one(q, x, &out);
    } else {
        resource_write_page(q, x, &out);
        resource_note(q, &q->of->remove, x, resource_trail(q, x), NULL);
        (void)q->of->take_away(q, x); /* there was something to do */
    }
    http_reply_json(q->req, 200, &out, api_barrier(q->a));
    buf_release(&out);
}

void resource_remove(struct http_req *req, void *app)
{
    struct resource_ask q;
    resource_begin(&q, req, app);
    const void *x = resource_find(&q, RESOURCE_TO_CHANGE, q.of->remove.verb);
    if (x && q.of->plan_remove && http_req_query_bool(req, "dry_run", false))
        q.of->plan_remove(&q, x);
    else if (x && (!q.of->check_remove || q.of->check_remove(&q, x) == 0))
        resource_do_remove(&q, x);
    else
        resource_refuse(&q);
    resource_end(&q);
}
