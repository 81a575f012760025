/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoints_book.c - what is known of the checkpoints of one job, as the store keeps it; see
 * checkpoints_book.h. */
#include "argusd/checkpoints/checkpoints_book.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"

enum { KEPT_MAX = 256, TEXT_MAX = 2 << 20 };

void book_release(struct book *b)
{
    ckpt_list_release(&b->list);
    free(b->id);
    free(b->project);
    free(b->user);
    free(b->metric);
    free(b->eval);
    free(b->stored);
}

size_t book_first_kept(const struct book *b)
{
    return b->list.n > KEPT_MAX ? b->list.n - KEPT_MAX : 0;
}

/* In the order of the list: a verdict stands as long as its files do. */
static void put_marks(const struct book *b, struct jout *j)
{
    char text[24];
    jout_open(j, "marks", '[');
    for (size_t i = book_first_kept(b); i < b->list.n; i++) {
        text_printf(text, "%" PRIu64, b->list.v[i].mark);
        jout_str(j, NULL, text);
    }
    jout_close(j, ']');
}

static uint64_t read_mark(const json_t *marks, size_t i)
{
    const char *text = json_string_value(json_array_get(marks, i));
    return text ? strtoull(text, NULL, 10) : 0; /* what is no number is no mark: it is read anew */
}

char *book_text(const struct book *b)
{
    struct buf out = BUF_INIT(TEXT_MAX);
    struct jout j = jout_begin(&out);
    if (!b->list.n && !b->owes_end)
        return NULL;
    jout_open(&j, NULL, '{');
    jout_int(&j, "seq", b->seq);
    jout_str(&j, "project", b->project);
    jout_str(&j, "user", b->user);
    jout_int(&j, "keep_last", b->policy.keep_last);
    jout_str(&j, "metric", b->metric);
    if (b->eval && !b->eval_is_secret)
        jout_str(&j, "eval", b->eval);
    jout_bool(&j, "min", b->policy.best_is_min);
    jout_int(&j, "k", b->k);
    jout_bool(&j, "open", b->followed || b->owes_end);
    jout_int(&j, "tracker", b->list.tracker);
    jout_open(&j, "list", '[');
    for (size_t i = book_first_kept(b); i < b->list.n; i++)
        ckpt_to_json(&b->list.v[i], &b->list, NULL, &j, NULL);
    jout_close(&j, ']');
    put_marks(b, &j);
    jout_open(&j, "pinned", '[');
    for (size_t i = 0; i < b->n_pinned; i++)
        jout_int(&j, NULL, b->pinned[i]);
    jout_close(&j, ']');
    jout_close(&j, '}');
    return buf_take(&out);
}

void book_read(struct book *b, const char *text)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    size_t i;
    const json_t *v;
    if (json_parse(text, strlen(text), TEXT_MAX, &o, NULL) < 0)
        return;
    b->seq = json_get_int(o, "seq", 0);
    b->k = (int)json_get_int(o, "k", 0);
    b->followed = json_get_bool(o, "open", false);
    set_str(&b->project, json_get_str(o, "project", NULL));
    set_str(&b->user, json_get_str(o, "user", NULL));
    set_str(&b->metric, json_get_str(o, "metric", NULL));
    set_str(&b->eval, json_get_str(o, "eval", NULL));
    b->policy = (struct ckpt_policy){.keep_last = json_get_int(o, "keep_last", 1),
                                     .best = b->metric != NULL,
                                     .best_is_min = json_get_bool(o, "min", false)};
    b->list.tracker = json_get_int(o, "tracker", CKPT_TRACKER_NONE);
    json_array_foreach (json_get_array(o, "list"), i, v) {
        struct ckpt c;
        if (ckpt_from_json(v, &b->list, &c) < 0 || ckpt_list_find(&b->list, c.step))
            continue;
        c.mark = read_mark(json_get_array(o, "marks"), i);
        *ckpt_list_add(&b->list, c.step) = c;
    }
    json_array_foreach (json_get_array(o, "pinned"), i, v)
        if (b->n_pinned < PINNED_MAX && json_is_integer(v))
            b->pinned[b->n_pinned++] = json_integer_value(v);
    book_mark_pinned(b, false);
    set_str(&b->stored, text);
}

void book_keep(struct book *b)
{
    struct store *store = b->cs->p.store;
    _cleanup_(freep) char *body = book_text(b);
    if (str_eq(body, b->stored))
        return;
    if (body) {
        struct store_entry row = {
            .kind = CHECKPOINTS_ENTRY, .name = b->id, .body = body, .at = clock_wall()};
        store_put_entry(store, &row);
    } else {
        store_remove_entry(store, CHECKPOINTS_ENTRY, b->id);
    }
    set_str(&b->stored, body);
}
