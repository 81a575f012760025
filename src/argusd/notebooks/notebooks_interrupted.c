/* SPDX-License-Identifier: Apache-2.0 */
/* notebooks_interrupted.c - a notebook whose machine was lost or taken back says so.
 *
 * Its job goes back to the queue by itself, and the scheduler's reason (what it waits for) takes
 * the place of the one for which it went. So what happened is read from the attempts of the job,
 * written into the notebook's row, and shown until people start the notebook anew. */
#include "argusd/notebooks/notebooks_state.h"
#include "base/message.h"
#include "base/str.h"
#include "core/job/job.h"

enum { INTERRUPTION_TEXT_MAX = 1024 };

/* The newest attempt that another one follows, and whose end was not told; NULL: there is none. */
static const struct attempt *notebook_find_interruption(const struct noted *x, const struct job *j)
{
    for (int i = j->n_attempts; i-- > 0;) {
        const struct attempt *a = &j->attempts[i];
        if (a->k <= x->n.told_attempt)
            return NULL;
        if (a->phase == ATTEMPT_ENDED &&
            (a->outcome == ATTEMPT_FAILED || a->outcome == ATTEMPT_PREEMPTED))
            return a;
    }
    return NULL;
}

void notebook_tell_interruption(struct noted *x, const struct job *j)
{
    const struct attempt *a = notebook_find_interruption(x, j);
    char text[INTERRUPTION_TEXT_MAX] = "{}";
    const char *code = "notebook_gave_way";
    if (!a || job_state_is_terminal(j->state))
        return; /* what ended it for good is told with its end */
    if (a->outcome == ATTEMPT_FAILED) {
        bool is_lost = a->finding == FINDING_NODE_LOST && a->node;
        code = is_lost ? "notebook_lost" : "notebook_interrupted";
        message_write(text, sizeof(text),
                      is_lost ? MESSAGE_ARGS(MESSAGE_STR("node", a->node))
                              : MESSAGE_ARGS(MESSAGE_KEPT("why", str_or(a->end_text, ""))));
    }
    x->n.told_attempt = a->k;
    x->n.interrupted_at = a->ended_at;
    set_str(&x->n.interrupted_code, code);
    set_str(&x->n.interrupted_text, text);
    notebook_save(x);
    notebook_note(x, "notebook_interrupted", "argusd", code, text);
}

void notebook_forget_interruption(struct noted *x)
{
    x->n.told_attempt = 0;
    x->n.interrupted_at = 0;
    set_str(&x->n.interrupted_code, NULL);
    set_str(&x->n.interrupted_text, NULL);
}
