/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - sends probe.sh and hands out what probe_read() makes of the answer; see probe.h. */
#include "ssh/probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"
#include "ssh/embedded.h"
#include "ssh/keep.h"
#include "ssh/trouble.h"

enum { LIMIT_S = 20 };

struct probe {
    struct ssh_call *call;
    struct probe_want want; /* its texts are these */
    struct ssh_target target;
    struct strv texts;
    int ports[PROBE_PORTS_MAX];
    probe_f cb;
    void *arg;
};

static void probe_copy_want(struct probe *p, const struct probe_want *w)
{
    p->want = *w;
    p->want.ray_bin = keep(&p->texts, w->ray_bin);
    p->want.ray_version = keep(&p->texts, w->ray_version);
    p->want.python_version = keep(&p->texts, w->python_version);
    p->want.shared_root = keep(&p->texts, w->shared_root);
    p->want.root_mark = keep(&p->texts, w->root_mark);
    p->want.node_ip = keep(&p->texts, w->node_ip);
    p->want.temp_dir = keep(&p->texts, w->temp_dir);
    p->want.owner = keep(&p->texts, w->owner);
    p->want.node = keep(&p->texts, w->node);
    p->want.n_ports = w->n_ports < PROBE_PORTS_MAX ? w->n_ports : PROBE_PORTS_MAX;
    if (p->want.n_ports)
        memcpy(p->ports, w->ports, p->want.n_ports * sizeof(*p->ports));
    p->want.ports = p->ports;
}

static void probe_destroy(struct probe *p)
{
    strv_release(&p->texts);
    free(p);
}

static void find_one(struct probe_result *ret, const char *code, const char *text)
{
    struct probe_finding *f = &ret->findings[ret->n_findings++];
    f->code = code;
    text_copy(f->text, text);
}

static void probe_on_answer(const struct ssh_result *r, void *arg)
{
    struct probe *p = arg;
    _cleanup_(freep) struct probe_result *got = xcalloc(1, sizeof(*got));
    bool hangs = r->trouble == SSH_TIMEOUT && r->heard_after;
    if (r->trouble == SSH_OK || hangs)
        probe_read(r->out, r->out_len, &p->want, p->want.now ? p->want.now + r->heard_after : 0,
                   got);
    else
        find_one(got, ssh_trouble_to_string(r->trouble), r->text);
    if (ssh_pinned_key(&p->target, got->host_key, NULL) < 0)
        got->host_key[0] = 0; /* the call itself says what is wrong with that file */
    p->cb(got, p->arg);
    probe_destroy(p);
}

/* $1… of probe.sh. */
static void add_words(const struct probe_want *w, struct strv *words)
{
    strv_add(words, str_or(w->ray_bin, ""));
    strv_add(words, str_or(w->shared_root, ""));
    strv_add(words, str_or(w->root_mark, ""));
    strv_add(words, str_or(w->temp_dir, "/tmp"));
    strv_add(words, str_or(w->owner, ""));
    for (size_t i = 0; i < w->n_ports; i++)
        strv_addf(words, "%d", w->ports[i]);
}

struct probe *probe_start(uv_loop_t *loop,
                          const struct ssh_target *t,
                          const struct probe_want *want,
                          usec_t limit,
                          probe_f cb,
                          void *arg)
{
    struct probe *p = xcalloc(1, sizeof(*p));
    p->cb = cb;
    p->arg = arg;
    probe_copy_want(p, want);
    p->target = (struct ssh_target){.name = keep(&p->texts, t->name),
                                    .known_hosts = keep(&p->texts, t->known_hosts),
                                    .local = t->local};
    _cleanup_(strv_release) struct strv words = {0};
    add_words(&p->want, &words);
    p->call = ssh_run(loop, t, (const char *)embedded_probe_sh, (const char *const *)words.v,
                      limit ? limit : LIMIT_S * USEC_SEC, probe_on_answer, p);
    return p;
}

void probe_free(struct probe *p)
{
    if (!p)
        return;
    ssh_call_free(p->call);
    probe_destroy(p);
}
