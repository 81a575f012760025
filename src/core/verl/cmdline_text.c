/* SPDX-License-Identifier: Apache-2.0 */
/* cmdline_text.c - a command line as text for people: a shell script, and the
 * `ray job submit` line that does the same by hand. See cmdline.h.
 *
 * `ray job submit -- WORD…` joins its words with rules that depend on the Ray
 * version (2.51 quotes as Windows does), so only words that no rule touches are
 * handed to it; anything else goes through the script. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "core/verl/cmdline.h"

enum { JSON_MAX = 1 << 20 };

static bool is_inert(const char *word)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_-+=./,:@%";
    return *word && !word[strspn(word, safe)];
}

static void put_words(struct buf *out, const struct strv *argv)
{
    for (size_t i = 0; i < argv->n; i++) {
        (void)buf_adds(out, i > 0 ? " \\\n    " : ""); /* out->failed is looked at once */
        (void)str_shell_quote(out, argv->v[i]);
    }
    (void)buf_addc(out, '\n');
}

int cmdline_script_text(const struct cmdline *c, const char *cwd, struct buf *out)
{
    (void)buf_adds(out, "#!/bin/sh\n# The training command of this attempt, word by word.\ncd ");
    (void)str_shell_quote(out, str_or(c->cwd, cwd));
    (void)buf_adds(out, " || exit 1\nexec ");
    put_words(out, &c->argv);
    return out->failed ? -EMSGSIZE : 0;
}

static void cmdline_text_put_runtime_env(struct buf *out,
                                         const struct cmdline *c,
                                         const char *python)
{
    struct buf json = BUF_INIT(JSON_MAX);
    struct jout j = jout_begin(&json);
    jout_open(&j, NULL, '{');
    jout_open(&j, "env_vars", '{');
    for (size_t i = 0; i < c->env.n; i++) {
        const struct pair *p = &c->env.v[i];
        jout_str(&j, p->key, str_is_secret_name(p->key) ? "***" : p->value);
    }
    jout_close(&j, '}');
    if (python)
        jout_str(&j, "py_executable", python);
    jout_close(&j, '}');
    (void)str_shell_quote(out, buf_str(&json));
    out->failed |= json.failed;
    buf_release(&json);
}

static void put_resources(struct buf *out, const struct pairs *resources)
{
    struct buf json = BUF_INIT(JSON_MAX);
    struct jout j = jout_begin(&json);
    if (!resources || resources->n == 0)
        return;
    jout_open(&j, NULL, '{');
    for (size_t i = 0; i < resources->n; i++)
        jout_raw(&j, resources->v[i].key, resources->v[i].value);
    jout_close(&j, '}');
    (void)buf_adds(out, " \\\n    --entrypoint-resources ");
    (void)str_shell_quote(out, buf_str(&json));
    out->failed |= json.failed;
    buf_release(&json);
}

int cmdline_submit_text(const struct cmdline *c, const struct cmdline_submit *how, struct buf *out)
{
    bool inert = true;
    for (size_t i = 0; i < c->argv.n; i++)
        inert &= is_inert(c->argv.v[i]);
    (void)buf_adds(out, "ray job submit --address ");
    (void)str_shell_quote(out, how->address);
    (void)buf_adds(out, " --submission-id ");
    (void)str_shell_quote(out, how->ray_id);
    (void)buf_addf(out, " \\\n    --entrypoint-num-cpus %g --entrypoint-num-gpus %g", how->cpus,
                   how->gpus);
    put_resources(out, how->resources);
    (void)buf_adds(out, " \\\n    --runtime-env-json ");
    cmdline_text_put_runtime_env(out, c, how->py_executable);
    (void)buf_adds(out, " \\\n    -- ");
    if (inert) {
        put_words(out, &c->argv);
    } else {
        (void)buf_adds(out, "/bin/sh ");
        (void)str_shell_quote(out, how->script);
        (void)buf_addc(out, '\n');
    }
    return out->failed ? -EMSGSIZE : 0;
}
