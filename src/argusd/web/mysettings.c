/* SPDX-License-Identifier: Apache-2.0 */
/* mysettings.c - /v1/me/settings: what who asks has set for himself. Nobody sees those of others,
 * and no event is made of them: they say nothing about the cluster. */
#include "argusd/api/routes.h"
#include "argusd/kit/api.h"
#include "argusd/people/ownsettings.h"
#include "base/json.h"
#include "base/message.h"

enum { MYSETTINGS_BODY_MAX = 2 * OWNSETTINGS_BYTES_MAX };

#define SETTINGS_TO_CHANGE                                                                         \
    "{\"type\":\"object\",\"additionalProperties\":{\"description\":\"the new value; null takes "  \
    "the setting away\"}}"
static const struct field change_rows[] = {OPT_AS("settings", SETTINGS_TO_CHANGE)};
static const struct field_table change_form = ACTION_FORM(change_rows);

static void mysettings_answer(struct http_req *req,
                              struct api *a,
                              const struct person *p,
                              uint64_t barrier)
{
    static const struct ownsettings_of nothing = {.settings = (char *)(uintptr_t) "{}"};
    const struct ownsettings_of *own = ownsettings_find(a->ownsettings, p);
    struct buf out = BUF_INIT(2 * OWNSETTINGS_BYTES_MAX);
    struct jout j = jout_begin(&out);
    field_to_json(&ownsettings_table, own ? own : &nothing, FIELD_SHOWN, FIELD_PAGE, &j, NULL);
    http_reply_json(req, 200, &out, barrier);
    buf_release(&out);
}

/* Who asks was admitted, so he is there. */
static const struct person *mysettings_person(const struct http_req *req, const struct api *a)
{
    return people_find(a->people, http_req_principal(req)->user);
}

static void mysettings_get(struct http_req *req, void *app)
{
    struct api *a = app;
    mysettings_answer(req, a, mysettings_person(req, a), api_reader_barrier(a));
}

static void mysettings_patch(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    const struct person *p = mysettings_person(req, a);
    _cleanup_(json_unrefp) json_t *o = api_read_action(req, &change_form);
    if (!o)
        return;
    json_t *changes = json_object_get(o, "settings");
    int r = store_check(a->store, &err);
    if (r == 0 && changes && !json_is_object(changes))
        r = message_refuse(&err, ERR_BAD_SPEC, "own_settings_object", MESSAGE_NO_ARGS);
    if (r == 0 && changes)
        r = ownsettings_change(a->ownsettings, p, changes, clock_wall(), &err);
    if (r < 0)
        api_fail(req, &err, 0);
    else
        mysettings_answer(req, a, p, api_barrier(a));
}

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/me/settings",
     .least = HTTP_ROLE_VIEWER,
     .handle = mysettings_get,
     .summary = "what you have set for yourself: saved views, columns, language",
     .reply_schema = "OwnSettings"},
    {.method = "PATCH",
     .pattern = "/v1/me/settings",
     .least = HTTP_ROLE_VIEWER,
     .max_body = MYSETTINGS_BODY_MAX,
     .handle = mysettings_patch,
     .summary = "set some of it; what is not named stays",
     .request_schema = "OwnSettingsChange",
     .reply_schema = "OwnSettings"},
};
static const struct http_schema schemas[] = {
    {.name = "OwnSettings", .table = &ownsettings_table, .which = FIELD_SHOWN},
    {.name = "OwnSettingsChange", .table = &change_form, .is_form = true},
};
const struct api_part part_mysettings = {rows, array_len(rows), schemas, array_len(schemas)};
