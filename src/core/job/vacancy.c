/* SPDX-License-Identifier: Apache-2.0 */
/* vacancy.c - the decision whether a raylet may be stopped; see vacancy.h. */
#include "core/job/vacancy.h"

static const double VACANCY_NOISE = 0.01;
static const usec_t SETTLES = 2 * USEC_SEC;   /* until a raylet has told what it gave back */
static const usec_t ONE_LIST = 30 * USEC_SEC; /* then one of two lists may be enough */
static const usec_t SILENCE = USEC_MIN;       /* then what Ray told last is believed */

bool vacancy_is_use(double gpus, double cpus)
{
    return gpus > VACANCY_NOISE || cpus > VACANCY_NOISE;
}

/* No list of jobs is new enough. */
static enum vacancy vacancy_unheard(const struct vacancy_sight *s, usec_t now)
{
    bool believed = s->jobs_of && now - s->since >= SILENCE;
    bool not_asked = s->is_whole && s->ray_away;
    return !s->anywhere && (believed || not_asked) ? VACANCY_FREE : VACANCY_UNTOLD;
}

enum vacancy vacancy_judge(const struct vacancy_sight *s, usec_t now)
{
    bool has_use = s->use_of >= s->since + SETTLES, has_holders = s->holders_of >= s->since;
    if (s->is_leased)
        return VACANCY_OURS;
    if (s->is_lost || s->may_end)
        return VACANCY_FREE;
    if (s->here || (has_use && vacancy_is_use(s->gpus, s->cpus)))
        return VACANCY_OTHERS;
    if (s->jobs_of < s->since)
        return vacancy_unheard(s, now);
    if (has_use && has_holders)
        return VACANCY_FREE;
    bool is_late = now - s->since >= ONE_LIST;
    return is_late && !s->anywhere && (has_use || has_holders) ? VACANCY_FREE : VACANCY_UNTOLD;
}
