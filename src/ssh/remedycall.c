/* SPDX-License-Identifier: Apache-2.0 */
/* remedycall.c - sends remedycall.sh and reads its answer; see remedycall.h. */
#include "ssh/remedycall.h"

#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/text.h"
#include "ssh/answer.h"
#include "ssh/embedded.h"
#include "ssh/later.h"
#include "ssh/raylet_names.h"

enum {
    STRAY_GRACE_S = 10,   /* between SIGTERM and SIGKILL */
    SESSION_AGE_MIN = 60, /* a living raylet writes its state each ten seconds */
    REMEDYCALL_COUNT_MAX = 1 << 20
};

struct remedycall {
    struct ssh_call *ssh;
    struct later *later; /* of names that cannot be used */
    char text[400];      /* why: as that of ssh_failed */
    remedycall_f cb;
    void *arg;
};

static void remedycall_read_removed(const char *value, struct remedycall_found *ret)
{
    ret->bytes += answer_number(&value, UINT64_C(1) << 42, 0) * 1024;
    ret->sessions++;
}

void remedycall_read(const char *text, size_t len, struct remedycall_found *ret)
{
    struct answer a = answer_of(text, len);
    *ret = (struct remedycall_found){0};
    while (answer_next(&a)) {
        const char *value = a.value;
        if (answer_is(&a, "PROCESSES"))
            ret->processes = answer_number(&value, REMEDYCALL_COUNT_MAX, 0);
        else if (answer_is(&a, "KILLED"))
            ret->killed = answer_number(&value, REMEDYCALL_COUNT_MAX, 0);
        else if (answer_is(&a, "LEFT"))
            ret->left = answer_number(&value, REMEDYCALL_COUNT_MAX, 0);
        else if (answer_is(&a, "REMOVED"))
            remedycall_read_removed(value, ret);
        else if (answer_is(&a, "END"))
            ret->is_whole = true;
    }
}

static void remedycall_on_answer(const struct ssh_result *r, void *arg)
{
    struct remedycall *c = arg;
    struct remedycall_found found;
    remedycall_read(r->out, r->out_len, &found);
    found.trouble = r->trouble;
    text_copy(found.text, r->text);
    c->ssh = NULL;
    c->cb(&found, c->arg);
    free(c);
}

static void remedycall_on_refused(void *arg)
{
    struct remedycall *c = arg;
    struct remedycall_found found = {.trouble = SSH_FAILED};
    text_copy(found.text, c->text);
    c->cb(&found, c->arg);
    free(c);
}

static void remedycall_words(const struct remedycall_want *want, struct strv *words)
{
    raylet_add_names(words, want->job ? "strays" : "sessions", want->owner, want->node);
    if (want->job) {
        strv_addf(words, "%d", STRAY_GRACE_S);
        strv_add(words, want->job);
    } else {
        strv_add(words, str_or(want->temp_dir, "/tmp/ray"));
        strv_addf(words, "%d", SESSION_AGE_MIN);
    }
}

struct remedycall *remedycall_new(uv_loop_t *loop,
                                  const struct ssh_target *t,
                                  const struct remedycall_want *want,
                                  usec_t limit,
                                  remedycall_f cb,
                                  void *arg)
{
    struct remedycall *c = xcalloc(1, sizeof(*c));
    _cleanup_(strv_release) struct strv words = {0};
    struct err err = {0};
    *c = (struct remedycall){.cb = cb, .arg = arg};
    if (raylet_check_names(want->owner, want->node, &err) < 0) {
        message_write(c->text, sizeof(c->text), MESSAGE_ARGS(MESSAGE_STR("says", err.text)));
        c->later = later_new(loop, remedycall_on_refused, c);
        return c;
    }
    remedycall_words(want, &words);
    c->ssh = ssh_run(loop, t, (const char *)embedded_remedycall_sh, (const char *const *)words.v,
                     limit, remedycall_on_answer, c);
    return c;
}

void remedycall_free(struct remedycall *c)
{
    if (!c)
        return;
    ssh_call_free(c->ssh);
    later_free(c->later);
    free(c);
}
