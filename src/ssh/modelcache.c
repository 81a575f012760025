/* SPDX-License-Identifier: Apache-2.0 */
/* modelcache.c - sends modelcache.sh and reads its answer; see modelcache.h. */
#include "ssh/modelcache.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/text.h"
#include "ssh/answer.h"
#include "ssh/embedded.h"

struct modelcache {
    struct ssh_call *call;
    modelcache_f cb;
    void *arg;
};

static const char *const modelcache_words[] = {
#define X(name, word) word,
    MODELCACHE_TABLE(X)
#undef X
};

const char *modelcache_to_string(enum modelcache_state state)
{
    return modelcache_words[state];
}

static enum modelcache_state modelcache_from_string(const char *word)
{
    int i = 0;
    while (i < MODELCACHE_AWAY && strcmp(word, modelcache_words[i]) != 0)
        i++;
    return i < MODELCACHE_AWAY ? (enum modelcache_state)i : MODELCACHE_BROKEN;
}

void modelcache_read(const char *text, size_t len, struct modelcache_found *ret)
{
    struct answer a = answer_of(text, len);
    *ret = (struct modelcache_found){.state = MODELCACHE_BROKEN};
    while (answer_next(&a)) {
        const char *rest = a.value;
        if (answer_is(&a, "STATE"))
            ret->state = modelcache_from_string(a.value);
        else if (answer_is(&a, "BYTES"))
            ret->bytes = answer_number(&rest, INT64_MAX, 0);
        else if (answer_is(&a, "REMOVED"))
            ret->removed = (int)answer_number(&rest, 1000000, 0);
        else if (answer_is(&a, "TEXT"))
            answer_text(rest, ret->text, sizeof(ret->text));
    }
}

static void modelcache_on_answer(const struct ssh_result *r, void *arg)
{
    struct modelcache *m = arg;
    struct modelcache_found found = {.state = MODELCACHE_AWAY};
    if (r->trouble == SSH_OK)
        modelcache_read(r->out, r->out_len, &found);
    else
        message_to_string(ssh_trouble_to_string(r->trouble), r->text, false, found.text,
                          sizeof(found.text));
    m->cb(&found, m->arg);
    free(m);
}

struct modelcache *modelcache_ask(uv_loop_t *loop,
                                  const struct ssh_target *t,
                                  const struct modelcache_want *want,
                                  usec_t limit,
                                  modelcache_f cb,
                                  void *arg)
{
    struct modelcache *m = xcalloc(1, sizeof(*m));
    _cleanup_(strv_release) struct strv words = {0};
    strv_add(&words, want->dir);
    strv_add(&words, want->from);
    strv_add(&words, want->hash);
    strv_addf(&words, "%" PRIu64, want->most);
    strv_add(&words, want->job);
    for (size_t i = 0; i < want->n_live && i < MODELCACHE_LIVE_MAX; i++)
        strv_add(&words, want->live[i]);
    *m = (struct modelcache){.cb = cb, .arg = arg};
    m->call = ssh_run(loop, t, (const char *)embedded_modelcache_sh, (const char *const *)words.v,
                      limit, modelcache_on_answer, m);
    return m;
}

void modelcache_free(struct modelcache *m)
{
    if (!m)
        return;
    ssh_call_free(m->call);
    free(m);
}
