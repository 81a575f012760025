/* SPDX-License-Identifier: Apache-2.0 */
/* service_keys_page.c - /v1/service-keys: keys that open requests to one service, made (and shown
 * once), listed, removed.
 *
 * Whoever may change a service may make and remove its keys. A key asks in the name of its maker:
 * one whose maker may not call the service any more is void until he may again. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/routes.h"
#include "argusd/kit/resource.h"
#include "argusd/services/serving.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { KEY_NAME_MAX = 128, KEY_LIMIT_MAX = 1000000000, KEY_DAYS_MAX = 3650, DAY_S = 24 * 60 * 60 };

enum key_state { KEY_WORKS, KEY_EXPIRED, KEY_VOID };
static const char *const key_state_names[] = {"works", "expired", "void", NULL};

struct key_page {
    struct service_key key; /* borrowed */
    int state;              /* enum key_state */
    char *text;             /* of one that was just made; borrowed */
};
static const struct field key_page_rows[] = {
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct key_page, key),
     .of = &service_key_table,
     .flags = FIELD_BORROWED},
    FIELD_AT(key_page,
             "state",
             FIELD_ENUM,
             state,
             .names = key_state_names,
             .flags = FIELD_SHOWN,
             .doc = "void: whoever made it may not call the service any more"),
    FIELD_AT(key_page,
             "key",
             FIELD_STR,
             text,
             .flags = FIELD_SHOWN | FIELD_OMIT | FIELD_BORROWED,
             .doc = "its text, in the reply that made it and never again"),
};
static const struct field_table key_page_table = FIELD_TABLE("ServiceKey", key_page_rows, key_page);

struct key_form {
    char *service, *name; /* name NULL: not given */
    int64_t requests_per_minute, tokens_per_minute;
    usec_t expires; /* a span; 0: never */
};
#define F(key, ftype, ...) FIELD_AT(key_form, #key, ftype, key, __VA_ARGS__)
static const struct field key_form_rows[] = {
    F(service, FIELD_STR, .flags = FIELD_ASKED | FIELD_REQUIRED, .doc = "the one that it opens"),
    F(name, FIELD_STR, .flags = FIELD_ASKED, .doc = "what it is for"),
    F(requests_per_minute,
      FIELD_INT,
      .max = KEY_LIMIT_MAX,
      .flags = FIELD_ASKED,
      .doc = "of this key; as the service has it for one user if not given"),
    F(tokens_per_minute,
      FIELD_INT,
      .max = KEY_LIMIT_MAX,
      .flags = FIELD_ASKED,
      .doc = "the same of tokens"),
    F(expires,
      FIELD_SPAN,
      .min = 60,
      .max = (double)KEY_DAYS_MAX * DAY_S,
      .flags = FIELD_ASKED,
      .doc = "30d, 12h …; never if not given"),
};
static const struct field_table key_form_table =
    FIELD_TABLE("ServiceKeyForm", key_form_rows, key_form);

/* ---- the page ---- */

/* NULL: there is none, or it is being removed. */
static const struct served *key_service(const struct resource_ask *q, const char *name)
{
    const struct served *s = name ? serving_find(q->a->serving, name) : NULL;
    return s && !s->removed ? s : NULL;
}

/* What a request with it would be told now. */
static enum key_state key_state(const struct resource_ask *q, const struct service_key *k)
{
    struct http_principal p = {.role = HTTP_ROLE_NONE};
    if (!service_key_works(k, clock_wall()))
        return KEY_EXPIRED;
    text_copy(p.user, k->user);
    text_copy(p.only, k->service);
    bool may = people_admit(q->a->people, &p) == 0 &&
               serving_may_call(q->a->serving, k->service, &p, NULL) == 0;
    return may ? KEY_WORKS : KEY_VOID;
}

static void key_fill(struct resource_ask *q, const void *x, void *out)
{
    struct key_page *page = out;
    page->key = *(const struct service_key *)x;
    page->state = (int)key_state(q, x);
    page->text = q->is_trail ? NULL : q->own;
}

/* ---- list ---- */

static const void *key_next(struct resource_ask *q, size_t *pos)
{
    return service_keys_next(q->a->service_keys, pos);
}

static bool key_is_wanted(struct resource_ask *q, const void *x)
{
    const char *service = http_req_query(q->req, "service");
    return !service || str_eq(service, ((const struct service_key *)x)->service);
}

static int key_compare(const void *x, const void *y)
{
    const struct service_key *a = *(const struct service_key *const *)x,
                             *b = *(const struct service_key *const *)y;
    int c = strcmp(a->service, b->service);
    if (c)
        return c;
    return a->created_at != b->created_at ? (a->created_at < b->created_at ? -1 : 1)
                                          : strcmp(a->id, b->id);
}

/* One of a service that he may not see is not there: no refusal names that service. */
static const void *key_find(struct resource_ask *q, const void *asked)
{
    const struct service_key *k = service_keys_find(q->a->service_keys, q->name);
    const struct served *s = k ? key_service(q, k->service) : NULL;
    (void)asked;
    return s && service_is_seen(s, &q->who) ? k : NULL;
}

/* Whoever may see or change a service may see or change its keys. */
static void key_thing(struct resource_ask *q,
                      const void *x,
                      const void *asked,
                      struct access_thing *ret)
{
    const struct key_form *f = asked;
    const char *name = x ? ((const struct service_key *)x)->service : f ? f->service : NULL;
    const struct served *s = key_service(q, name);
    ret->kind = ACCESS_KIND_SERVICE;
    ret->name = str_or(name, "");
    ret->owner = NULL;
    if (s)
        *ret = service_thing(s);
}

static char *key_object(const void *x)
{
    return xasprintf("service/%s", ((const struct service_key *)x)->service);
}

/* ---- make and remove ---- */

static int key_check(struct resource_ask *q, const void *old, void *asked)
{
    const struct key_form *f = asked;
    (void)old;
    if (!key_service(q, f->service))
        return message_refuse(
            &q->err, ERR_NOT_FOUND, "not_found",
            MESSAGE_ARGS(MESSAGE_STR("noun", "service"), MESSAGE_STR("name", f->service)));
    q->field = "name";
    if (f->name && (strlen(f->name) > KEY_NAME_MAX || str_has_control(f->name)))
        return message_refuse(&q->err, ERR_BAD_SPEC, "service_key_name",
                              MESSAGE_ARGS(MESSAGE_NUM("most", KEY_NAME_MAX)));
    q->field = NULL;
    if (service_keys_count(q->a->service_keys, f->service) >= SERVICE_KEYS_OF_SERVICE_MAX)
        return message_refuse(&q->err, ERR_REFUSED, "service_keys_full",
                              MESSAGE_ARGS(MESSAGE_STR("service", f->service),
                                           MESSAGE_NUM("most", SERVICE_KEYS_OF_SERVICE_MAX)));
    return 0;
}

static const void *key_write(struct resource_ask *q, const void *old, void *asked)
{
    const struct key_form *f = asked;
    usec_t now = clock_wall();
    char user[HTTP_USER_MAX], text[TOKEN_TEXT_MAX];
    (void)old;
    text_copy(user, q->who.user);
    const struct service_key form = {.service = f->service,
                                     .name = f->name,
                                     .user = user,
                                     .requests_per_minute = f->requests_per_minute,
                                     .tokens_per_minute = f->tokens_per_minute,
                                     .expires_at = f->expires ? now + f->expires : 0};
    const struct service_key *k = service_keys_add(q->a->service_keys, &form, now, text);
    q->own = xstrdup(text);
    return k;
}

static bool key_take_away(struct resource_ask *q, const void *x)
{
    service_keys_remove(q->a->service_keys, x);
    return true;
}

static const struct resource key_noun = {
    .noun = "key",
    .kind = ACCESS_KIND_SERVICE,
    .collection = "keys",
    .param = "key",
    .page = &key_page_table,
    .form = &key_form_table,
    .may_see = ACCESS_SERVICE_SEE,
    .may_change = ACCESS_SERVICE_CHANGE,
    .add = {"service_key_added", "change"},
    .remove = {"service_key_removed", "change"},
    .next = key_next,
    .wants = key_is_wanted,
    .compare = key_compare,
    .find = key_find,
    .thing = key_thing,
    .object = key_object,
    .fill = key_fill,
    .check = key_check,
    .write = key_write,
    .take_away = key_take_away,
};

static const struct http_param key_list_params[] = {
    {"service", HTTP_PARAM_STRING, "of this service alone"},
    {0}};
static const struct http_route rows[] = {
    RESOURCE_LIST(&key_noun,
                  "/v1/service-keys",
                  VIEWER,
                  "keys of the services that you may see, without their text",
                  .params = key_list_params,
                  .reply_schema = "ServiceKeyList"),
    RESOURCE_ADD(&key_noun,
                 "/v1/service-keys",
                 USER,
                 "make a key that opens requests to one service; its text is shown this once",
                 .max_body = RESOURCE_BODY_MAX,
                 .request_schema = "ServiceKeyForm",
                 .reply_schema = "ServiceKey"),
    RESOURCE_REMOVE(&key_noun,
                    "/v1/service-keys/{key}",
                    USER,
                    "remove a key: it opens nothing from now on",
                    .reply_schema = "ServiceKey",
                    .example = "3f2a9c01b7de"),
};
static const struct http_schema schemas[] = {
    {.name = "ServiceKeyForm", .table = &key_form_table, .which = FIELD_ASKED, .is_form = true},
    {.name = "ServiceKey", .table = &key_page_table, .which = FIELD_SHOWN},
    LIST_OF("ServiceKeyList", "keys", "ServiceKey"),
};
const struct api_part part_service_keys_page = {rows, array_len(rows), schemas, array_len(schemas)};
