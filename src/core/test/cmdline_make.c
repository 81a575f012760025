/* SPDX-License-Identifier: Apache-2.0 */
/* cmdline_make.c - see cmdline_make.h. */
#include "cmdline_make.h"

#include <string.h>

#include "base/doc/doc.h"
#include "base/json.h"

static int read_spec(const char *yaml, const struct make_place *place, struct made *m)
{
    struct doc *doc = NULL;
    _cleanup_(freep) char *user = xasprintf("%s/users/alice", place->root);
    const struct spec_roots roots = {.shared_root = place->root, .user_root = user};
    int r = doc_parse(yaml, strlen(yaml), true, &doc, &m->ps);
    if (r == 0)
        r = spec_read(doc_root(doc), NULL, &m->spec, &m->ps);
    if (r == 0)
        r = spec_expand(&m->spec, &roots, &m->ps);
    doc_free(doc);
    return r;
}

int make_cmdline(const char *yaml,
                 const char *version,
                 const struct make_place *place,
                 struct made *ret)
{
    *ret = (struct made){0};
    int r = read_spec(yaml, place, ret);
    if (r < 0)
        return r;
    const char *id = ret->spec.id ? ret->spec.id : "job-1";
    _cleanup_(freep) char *user = xasprintf("%s/users/alice", place->root);
    _cleanup_(freep) char *job = xasprintf("%s/jobs/%s", place->root, id);
    _cleanup_(freep) char *attempt = xasprintf("%s/attempts/1", job);
    const struct verl_version *v = version ? verl_version_find(version, NULL) : NULL;
    const struct cmdline_in in = {
        .spec = &ret->spec,
        .version = v,
        .id = id,
        .attempt = 1,
        .shared_root = place->root,
        .user_root = user,
        .job_dir = job,
        .attempt_dir = attempt,
        .hook_dir = place->hook,
        .own_step = place->own_step,
        .user_code_path = place->code,
    };
    demand_compute(&ret->spec, v, NULL, &ret->demand);
    return cmdline_build(&in, &ret->cmd, &ret->ps, &ret->err);
}

void made_release(struct made *m)
{
    cmdline_release(&m->cmd);
    spec_release(&m->spec);
    problems_release(&m->ps);
}

void made_to_text(const struct made *m, struct buf *out)
{
    const struct demand *d = &m->demand;
    (void)buf_adds(out, "# argv\n"); /* the buffer of a test is large enough */
    for (size_t i = 0; i < m->cmd.argv.n; i++)
        (void)buf_addf(out, "%s\n", m->cmd.argv.v[i]);
    (void)buf_adds(out, "# env\n");
    for (size_t i = 0; i < m->cmd.env.n; i++)
        (void)buf_addf(out, "%s=%s\n", m->cmd.env.v[i].key, m->cmd.env.v[i].value);
    (void)buf_adds(out, m->cmd.links.n > 0 ? "# links\n" : "");
    for (size_t i = 0; i < m->cmd.links.n; i++)
        (void)buf_addf(out, "%s -> %s\n", m->cmd.links.v[i].key, m->cmd.links.v[i].value);
    (void)buf_addf(out,
                   "# demand\nnnodes %d\ngpus_per_node %g\ncpus_per_node %g\nextra_cpus %g\n"
                   "driver_cpus %g\ndriver_gpus %g\n",
                   d->nnodes, d->gpus_per_node, d->cpus_per_node, d->extra_cpus, d->driver_cpus,
                   d->driver_gpus);
}

static void pairs_json(struct jout *j, const char *key, const struct pairs *p)
{
    jout_open(j, key, '{');
    for (size_t i = 0; i < p->n; i++)
        jout_str(j, p->v[i].key, p->v[i].value);
    jout_close(j, '}');
}

void made_to_json(const struct made *m, struct buf *out)
{
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    jout_open(&j, "argv", '[');
    for (size_t i = 0; i < m->cmd.argv.n; i++)
        jout_str(&j, NULL, m->cmd.argv.v[i]);
    jout_close(&j, ']');
    pairs_json(&j, "env", &m->cmd.env);
    pairs_json(&j, "links", &m->cmd.links);
    jout_close(&j, '}');
}
