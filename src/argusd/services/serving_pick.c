/* SPDX-License-Identifier: Apache-2.0 */
/* serving_pick.c - whether a version that a request names can answer it.
 *
 * A request without a name goes to the version that has the traffic, and so does one that names it:
 * whatever keeps that one from answering is said, and asking wakes it. Any other version answers
 * only while it has a replica that is ready. Of those that have none, the one that is kept warm is
 * worth to be asked again, for argusd loads it; another one is refused, with those that can be
 * asked, and such a request wakes nothing and keeps nothing awake. */
#include <inttypes.h>

#include "argusd/services/serving_state.h"
#include "base/buf.h"
#include "base/message.h"
#include "base/str.h"

enum { PICK_NUMBER_MAX = 1000000000, PICK_NAMES_MAX = SERVICE_VERSIONS_MAX * 12 };

int service_version_from_text(const char *text, int64_t *ret, struct err *err)
{
    if (!text) {
        *ret = 0;
        return 0;
    }
    if (str_to_int(text, 1, PICK_NUMBER_MAX, ret, NULL) < 0)
        return message_refuse(err, ERR_BAD_REQUEST, "serve_version_text",
                              MESSAGE_ARGS(MESSAGE_STR("text", text)));
    return 0;
}

bool service_version_answers(const struct service_version *v)
{
    for (size_t i = 0; i < v->n_units; i++)
        if (v->units[i]->state == SERVE_UNIT_READY)
            return true;
    return false;
}

bool serving_is_warm(const struct service_version *v)
{
    const struct served *s = v->of;
    return v->n == s->previous && s->keep == SERVE_KEEP_WARM && !s->stopped && !v->failed &&
           !v->model_job && serving_yielded(v) < s->replicas;
}

/* Its replicas need not be there yet: each turn sees to it that they come. */
bool serving_is_loading(const struct service_version *v)
{
    const struct served *s = v->of;
    return v->n != s->current && serving_is_warm(v) && !s->asleep_at && !s->woken_at &&
           !service_version_answers(v);
}

/* What sleeps, or is being woken, is loaded because somebody asks it. */
static bool pick_is_woken_by_asking(const struct served *s, const struct service_version *v)
{
    return (s->asleep_at || s->woken_at) && (v->n == s->current || serving_is_warm(v));
}

static bool pick_may(const struct served *s, const struct service_version *v)
{
    return service_version_answers(v) || pick_is_woken_by_asking(s, v);
}

/* "v3, v2": those that can be asked, the newest first; "" where none can. */
static void pick_names(const struct served *s, struct buf *ret)
{
    for (size_t i = 0; i < s->n_versions; i++)
        if (pick_may(s, s->versions[i]))
            (void)buf_addf(ret, "%sv%" PRId64, ret->len ? ", " : "",
                           s->versions[i]->n); /* the room is for all of them */
}

static int pick_refuse(const struct served *s,
                       int64_t n,
                       enum err_code code,
                       const char *says,
                       struct err *err)
{
    _cleanup_(buf_release) struct buf names = BUF_INIT(PICK_NAMES_MAX);
    pick_names(s, &names);
    return message_refuse(err, code, says,
                          MESSAGE_ARGS(MESSAGE_STR("service", s->name), MESSAGE_NUM("version", n),
                                       MESSAGE_STR("can", buf_str(&names))));
}

int serving_pick(const struct served *s, int64_t n, struct err *err)
{
    const struct service_version *v = service_find_version(s, n);
    int64_t of_service = s->current ? s->current : s->wanted;
    if (!n || n == of_service)
        return 0;
    if (!v)
        return pick_refuse(s, n, ERR_NOT_FOUND, "serve_version_none", err);
    if (s->stopped || serving_is_loading(v) || pick_may(s, v))
        return 0;
    return pick_refuse(s, n, ERR_CONFLICT, "serve_version_not_ready", err);
}

int serving_refuse_loading(const struct service_version *v, struct err *err)
{
    return pick_refuse(v->of, v->n, ERR_UNAVAILABLE, "serve_version_not_ready", err);
}
