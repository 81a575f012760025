/* SPDX-License-Identifier: Apache-2.0 */
/* noderecord.c - see noderecord.h. Words for enums and names for members, so that an older or
 * newer argusd reads what it knows. Monotonic times are not stored: a restart waits anew. */
#include "argusd/noderecord.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/doc.h"
#include "base/str.h"

/* ---- the facts, by table ---- */

struct fact {
    const char *key;
    size_t offset, size;
};
#define FACT(member)                                                                               \
    {                                                                                              \
#member, offsetof(struct node_facts, member), sizeof(((struct node_facts *)0)->member)     \
    }
static const struct fact facts[] = {FACT(hostname),     FACT(python),  FACT(ray),    FACT(ray_bin),
                                    FACT(torch),        FACT(cuda),    FACT(driver), FACT(image),
                                    FACT(vllm),         FACT(sglang),  FACT(numpy),  FACT(verl),
                                    FACT(transformers), FACT(gpu_type)};

void noderecord_facts(const struct node_facts *f, struct jout *j, const char *key)
{
    jout_open(j, key, '{');
    for (size_t i = 0; i < array_len(facts); i++) {
        const char *text = (const char *)f + facts[i].offset;
        if (*text)
            jout_str(j, facts[i].key, text);
    }
    jout_int(j, "gpus", f->gpus);
    jout_real(j, "cpus", f->cpus);
    jout_int(j, "memory_bytes", (int64_t)f->memory_bytes);
    jout_int(j, "disk_free_bytes", (int64_t)f->disk_free_bytes);
    jout_int(j, "shm_free_bytes", (int64_t)f->shm_free_bytes);
    jout_int(j, "skew_usec", f->skew);
    jout_time(j, "at", f->at);
    jout_close(j, '}');
}

static usec_t read_time(const json_t *o, const char *key)
{
    usec_t t = 0;
    const char *text = json_get_str(o, key, "");
    return clock_from_string(text, &t, NULL) < 0 ? 0 : t;
}

static void read_facts(const json_t *o, struct node_facts *f)
{
    for (size_t i = 0; i < array_len(facts); i++)
        (void)snprintf((char *)f + facts[i].offset, facts[i].size, "%s",
                       json_get_str(o, facts[i].key, "")); /* as long as it was */
    f->gpus = json_get_int(o, "gpus", 0);
    f->cpus = json_get_real(o, "cpus", 0);
    f->memory_bytes = (uint64_t)json_get_int(o, "memory_bytes", 0);
    f->disk_free_bytes = (uint64_t)json_get_int(o, "disk_free_bytes", 0);
    f->shm_free_bytes = (uint64_t)json_get_int(o, "shm_free_bytes", 0);
    f->skew = json_get_int(o, "skew_usec", 0);
    f->at = read_time(o, "at");
}

/* ---- the row ---- */

static void put_watch(struct jout *j, const struct stopwatch *w)
{
    jout_open(j, "drain_watch", '{');
    jout_int(j, "spent", (int64_t)w->spent);
    jout_bool(j, "running", w->running);
    jout_int(j, "wall", (int64_t)w->wall);
    jout_int(j, "boot", (int64_t)w->boot);
    jout_str(j, "boot_id", w->boot_id);
    jout_close(j, '}');
}

static void read_watch(const json_t *o, struct stopwatch *w)
{
    w->spent = (usec_t)json_get_int(o, "spent", 0);
    w->running = json_get_bool(o, "running", false);
    w->wall = (usec_t)json_get_int(o, "wall", 0);
    w->boot = (usec_t)json_get_int(o, "boot", 0);
    (void)snprintf(w->boot_id, sizeof(w->boot_id), "%s",
                   json_get_str(o, "boot_id", "")); /* as long as it was */
}

void noderecord_write(const struct node_row *n, struct buf *out)
{
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    nodespec_to_json(&n->spec, &j, "spec", false);
    jout_int(&j, "seq", n->seq);
    jout_str(&j, "want", node_want_to_string(n->want));
    jout_str(&j, "state", node_state_to_string(n->state));
    jout_str(&j, "step", node_step_to_string(n->step));
    jout_time(&j, "added_at", n->added_at);
    jout_time(&j, "since", n->since);
    jout_str(&j, "code", n->reason.code);
    jout_str(&j, "text", n->reason.text);
    jout_str(&j, "fix", n->reason.fix);
    jout_str(&j, "sick", n->sick);
    jout_time(&j, "sick_since", n->sick_since);
    jout_bool(&j, "ssh_away", n->ssh_away);
    jout_bool(&j, "may_run", n->may_run);
    jout_int(&j, "tries", n->tries);
    jout_int(&j, "place", n->place);
    jout_str(&j, "session", n->session);
    jout_str(&j, "host_key", n->host_key);
    jout_str(&j, "address", n->address);
    jout_int(&j, "drain_within", (int64_t)n->drain_within);
    put_watch(&j, &n->drain_watch);
    jout_str(&j, "then", node_then_to_string(n->then));
    jout_bool(&j, "drain_due", n->drain_due);
    jout_bool(&j, "downed", n->downed);
    jout_bool(&j, "forced", n->forced);
    noderecord_facts(&n->facts, &j, "facts");
    jout_close(&j, '}');
}

static void read_text(const json_t *o, const char *key, char *ret, size_t size)
{
    (void)snprintf(ret, size, "%s", json_get_str(o, key, "")); /* as long as it was */
}

static void read_row(const json_t *o, struct node_row *n)
{
    n->seq = json_get_int(o, "seq", 0);
    n->want = node_want_from_string(json_get_str(o, "want", ""));
    n->state = node_state_from_string(json_get_str(o, "state", ""));
    n->step = node_step_from_string(json_get_str(o, "step", ""));
    n->then = node_then_from_string(json_get_str(o, "then", "wait"));
    n->added_at = read_time(o, "added_at");
    n->since = read_time(o, "since");
    read_text(o, "code", n->reason.code, sizeof(n->reason.code));
    read_text(o, "text", n->reason.text, sizeof(n->reason.text));
    read_text(o, "fix", n->reason.fix, sizeof(n->reason.fix));
    read_text(o, "sick", n->sick, sizeof(n->sick));
    n->sick_since = read_time(o, "sick_since");
    n->ssh_away = json_get_bool(o, "ssh_away", false);
    n->may_run = json_get_bool(o, "may_run", false);
    n->tries = (int)json_get_int(o, "tries", 0);
    n->place = (int)json_get_int(o, "place", 0);
    read_text(o, "session", n->session, sizeof(n->session));
    read_text(o, "host_key", n->host_key, sizeof(n->host_key));
    read_text(o, "address", n->address, sizeof(n->address));
    n->drain_within = (usec_t)json_get_int(o, "drain_within", 0);
    read_watch(json_get_object(o, "drain_watch"), &n->drain_watch);
    n->drain_due = json_get_bool(o, "drain_due", false);
    n->downed = json_get_bool(o, "downed", false);
    n->forced = json_get_bool(o, "forced", false);
    read_facts(json_get_object(o, "facts"), &n->facts);
}

static int read_spec(const char *text, struct node_row *n, struct err *err)
{
    struct problems ps = {0};
    _cleanup_(doc_freep) struct doc *d = NULL;
    struct nodespec spec = {0};
    int r = doc_parse(text, strlen(text), false, &d, &ps);
    if (r == 0)
        r = nodespec_read(node_find(doc_root(d), "spec"), "", &spec, &ps);
    nodespec_move(&n->spec, &spec);
    if (r < 0)
        r = err_set(err, ERR_STORE, "the store holds a node that cannot be read: %.200s",
                    ps.n ? ps.v[0].text : "no spec");
    problems_release(&ps);
    return r;
}

int noderecord_read(const char *text, struct node_row **ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    struct node_row *n = node_row_new();
    int r = json_parse(text, strlen(text), NODERECORD_MAX, &o, err);
    if (r == 0)
        r = read_spec(text, n, err);
    if (r == 0) {
        read_row(o, n);
        bool known = n->want < NODE_WANT_END && n->state < NODE_STATE_END &&
                     n->step < NODE_STEP_END && n->then < NODE_THEN_END;
        const char *broken = known ? node_check(n) : "a word is not known";
        if (broken)
            r = err_set(err, ERR_STORE, "the store holds a node that cannot be: %s", broken);
    }
    if (r < 0)
        node_row_free(n);
    else
        *ret = n;
    return r;
}
