/* SPDX-License-Identifier: Apache-2.0 */
/* secondopinion.h - asks the model that argus.yaml names about failures of which our own finding is
 * not sure.
 *
 * Off unless argus.yaml names one. Each finding is asked about once, one at a time; what is beyond
 * the hour's questions or the day's tokens is passed over, for good, and so is one that the model
 * does not answer. One user's jobs leave a part of each bound to others (secondbook.h). Secrets are
 * hidden in what it is sent and in what it says. Its answer is an opinion of the job
 * (core/finding/opinion/opinion.h) and nothing else: nobody acts on it. */
#pragma once
#include "argusd/kit/api.h"

struct secondopinion;

/* a is borrowed, and is not looked at before the start. */
struct secondopinion *secondopinion_new(struct api *a);
#define SECONDOPINION_ENTRY "second_opinion"
/* A row of the store; one that cannot be read is an error in the log. */
void secondopinion_restore(struct secondopinion *s, const struct store_entry *row);
void secondopinion_start(struct secondopinion *s);
/* Nothing is asked any more; an answer that is on its way is lost. NULL is fine. */
void secondopinion_close(struct secondopinion *s);
void secondopinion_free(struct secondopinion *s);

struct secondopinion_state {
    const char *model;                            /* NULL: nobody is asked */
    int64_t asked, answered, failed, passed_over; /* since argusd started */
    int64_t left_in_hour, tokens_left;            /* questions, and tokens of the day */
    usec_t asked_at;                              /* 0: never */
    const char *trouble;                          /* of the last question; "" = none */
};
void secondopinion_state(const struct secondopinion *s, struct secondopinion_state *ret);
