/* SPDX-License-Identifier: Apache-2.0 */
/* notebooks_rows.c - the table of notebooks and its rows in the store; see notebooks.h. */
#include <stdlib.h>
#include <string.h>

#include "argusd/notebooks/notebooks_state.h"
#include "argusd/submit/submit.h"
#include "base/digest/hash.h"
#include "base/log.h"
#include "base/str.h"

static char *notebook_key(const char *owner, const char *name)
{
    return xasprintf("%s/%s", owner, name);
}

void notebook_save(const struct noted *x)
{
    _cleanup_(freep) char *body = field_to_text(&notebook_table, &x->n, FIELD_STORED, FIELD_ROW);
    _cleanup_(freep) char *key = notebook_key(x->n.owner, x->n.name);
    const struct store_entry row = {
        .kind = NOTEBOOKS_ENTRY, .name = key, .body = body, .at = clock_wall()};
    store_put_entry(x->of->a->store, &row);
}

struct noted *notebook_keep(struct notebooks *ns, struct notebook *taken)
{
    _cleanup_(freep) char *key = notebook_key(taken->owner, taken->name);
    struct noted *x = xcalloc(1, sizeof(*x));
    x->n = *taken;
    *taken = (struct notebook){0};
    x->of = ns;
    (void)map_set(ns->by_key, key, x); /* there was none */
    return x;
}

static void notebook_free(struct noted *x)
{
    submit_own_forget(x->submit);
    notebook_forget_past_job(x);
    field_release(&notebook_table, &x->n);
    free(x);
}

void notebook_drop(struct noted *x)
{
    _cleanup_(freep) char *key = notebook_key(x->n.owner, x->n.name);
    store_remove_entry(x->of->a->store, NOTEBOOKS_ENTRY, key);
    (void)map_remove(x->of->by_key, key); /* it is x */
    notebook_free(x);
}

const struct noted *notebooks_find(const struct notebooks *ns, const char *owner, const char *name)
{
    _cleanup_(freep) char *key = notebook_key(owner, name);
    return map_find(ns->by_key, key);
}

struct noted *notebook_own(struct notebooks *ns, const struct noted *x)
{
    _cleanup_(freep) char *key = notebook_key(x->n.owner, x->n.name);
    return map_find(ns->by_key, key);
}

const struct noted *notebooks_next(const struct notebooks *ns, size_t *pos)
{
    return map_next(ns->by_key, pos, NULL);
}

void notebooks_restore(struct notebooks *ns, const struct store_entry *row)
{
    struct notebook n = {0};
    if (field_from_text(&notebook_table, row->body, FIELD_STORED, &n) && n.name && n.owner &&
        !notebooks_find(ns, n.owner, n.name)) {
        (void)notebook_keep(ns, &n); /* it is in the table */
        return;
    }
    log_warn("notebook", "the row of notebook '%s' cannot be read: it is left out", row->name);
    field_release(&notebook_table, &n);
}

struct notebooks *notebooks_new(struct api *a)
{
    unsigned char seed[16];
    struct notebooks *ns = xcalloc(1, sizeof(*ns));
    random_bytes(seed, sizeof(seed));
    ns->a = a;
    ns->by_key = map_new(seed);
    return ns;
}

void notebooks_free(struct notebooks *ns)
{
    struct noted *x;
    if (!ns)
        return;
    for (size_t pos = 0; (x = map_next(ns->by_key, &pos, NULL));)
        notebook_free(x);
    map_free(ns->by_key);
    free(ns);
}
