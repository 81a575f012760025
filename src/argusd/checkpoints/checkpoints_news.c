/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoints_news.c - what is told of a job's checkpoints, as its events; see
 * checkpoints_book.h. A state is told once, not at each look. */
#include <inttypes.h>

#include "argusd/checkpoints/checkpoints_book.h"
#include "base/log.h"
#include "base/message.h"
#include "base/text.h"
#include "core/check/preflight.h"

enum { SIZE_TEXT = 32 };

static void checkpoints_news_tell(const struct book *b,
                                  const char *actor,
                                  const char *kind,
                                  const char *code,
                                  const char *text,
                                  int64_t step,
                                  uint64_t bytes)
{
    char data[96];
    text_printf(data, "{\"step\":%" PRId64 ",\"bytes\":%" PRIu64 "}", step, bytes);
    struct events_note note = {.kind = kind,
                               .actor = actor,
                               .job_seq = b->seq,
                               .job = b->id,
                               .code = code,
                               .text = text,
                               .data = data};
    char said[JOB_REASON_TEXT_MAX];
    message_to_string(code, text, true, said, sizeof(said));
    log_info("checkpoints", "%s: %s job=%s", kind, said, b->id);
    events_add(b->cs->p.events, &note, clock_wall());
}

void book_tell_one(const struct book *b, const struct ckpt *c)
{
    char text[JOB_REASON_TEXT_MAX], size[SIZE_TEXT];
    if (c->state == CKPT_VERIFIED) {
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_NUM("step", c->step),
                                   MESSAGE_STR("size", preflight_size_text(c->bytes, size))));
        checkpoints_news_tell(b, "argusd", "checkpoint", "checkpoint_complete", text, c->step,
                              c->bytes);
    } else {
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_NUM("step", c->step), MESSAGE_KEPT("why", c->why)));
        checkpoints_news_tell(b, "argusd", "checkpoint_broken", "checkpoint_broken", text, c->step,
                              c->bytes);
    }
}

void book_tell_found(const struct book *b, const struct ckpt_list *found)
{
    bool is_new = false;
    for (size_t i = 0; i < found->n; i++) {
        const struct ckpt *c = &found->v[i], *old = ckpt_list_find(&b->list, c->step);
        bool is_told = c->state == CKPT_VERIFIED || c->state == CKPT_BROKEN;
        if (is_told && (!old || old->state != c->state)) {
            book_tell_one(b, c);
            is_new = is_new || c->state == CKPT_VERIFIED;
        }
    }
    struct live *l = is_new ? jobs_find_id(b->cs->p.jobs, b->id) : NULL;
    if (l)
        jobs_saved(l);
}

static const char *const eval_codes[CKPT_EVAL_COUNT] = {
    [CKPT_EVAL_SUBMITTED] = "checkpoint_eval_submitted",
    [CKPT_EVAL_DONE] = "checkpoint_eval_done",
    [CKPT_EVAL_SILENT] = "checkpoint_eval_silent",
    [CKPT_EVAL_FAILED] = "checkpoint_eval_failed",
    [CKPT_EVAL_REFUSED] = "checkpoint_eval_refused",
};

void book_tell_eval(const struct book *b, const struct ckpt *c, bool is_full, const struct err *why)
{
    char text[JOB_REASON_TEXT_MAX];
    const char *code = is_full ? "checkpoint_eval_full" : eval_codes[c->eval];
    if (why)
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_NUM("step", c->step), MESSAGE_ERR("why", why)));
    else
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_NUM("step", c->step), MESSAGE_STR("job", c->eval_job)));
    checkpoints_news_tell(b, "argusd", "checkpoint_eval", code, text, c->step, c->bytes);
}

void book_tell_pinned(const struct book *b, const struct ckpt *c, const char *actor)
{
    char text[JOB_REASON_TEXT_MAX];
    const char *kind = c->pinned ? "checkpoint_pinned" : "checkpoint_unpinned";
    message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_NUM("step", c->step)));
    checkpoints_news_tell(b, actor, kind, kind, text, c->step, c->bytes);
}

void book_tell_removed(const struct book *b,
                       const char *actor,
                       const char *steps,
                       int64_t last,
                       uint64_t bytes)
{
    char text[JOB_REASON_TEXT_MAX], size[SIZE_TEXT];
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("steps", steps),
                               MESSAGE_STR("size", preflight_size_text(bytes, size))));
    checkpoints_news_tell(b, actor, "checkpoint_removed", "checkpoint_removed", text, last, bytes);
}

void book_tell_room(struct book *b, const struct book_room *r, uint64_t free_bytes)
{
    char text[JOB_REASON_TEXT_MAX], need[SIZE_TEXT], room[SIZE_TEXT];
    struct reason why;
    bool fits = r->goes >= r->lacks;
    if (!r->lacks || (b->room_told && !fits)) {
        b->room_told = r->lacks > 0;
        return; /* there is room, or it was said */
    }
    b->room_told = !fits;
    const char *kind = fits ? "checkpoint_headroom" : "checkpoint_no_room";
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("need", preflight_size_text(r->next, need)),
                               MESSAGE_STR("room", preflight_size_text(free_bytes, room))));
    reason_set(&why, finding_class_to_string(FINDING_DISK_FULL), kind, text);
    checkpoints_news_tell(b, "argusd", kind, why.code, why.text, 0, r->goes);
}

bool book_is_over_quota(struct book *b)
{
    char text[JOB_REASON_TEXT_MAX];
    struct err err = {0};
    bool is_over = checkpoints_check_quota(b->cs, b->project, b->user, &err) < 0;
    if (is_over && !b->quota_told) {
        struct reason why;
        message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_ERR("why", &err)));
        reason_set(&why, "quota_checkpoints", "checkpoint_quota", text);
        checkpoints_news_tell(b, "argusd", "checkpoint_quota", why.code, why.text, 0,
                              ckpt_list_bytes(&b->list));
    }
    b->quota_told = is_over;
    return is_over;
}
