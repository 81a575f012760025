/* SPDX-License-Identifier: Apache-2.0 */
/* tokens.c - tokens: made (and shown once), listed, revoked.
 *
 * Nobody makes a token that may do more than the one in hand, nor more than its user. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/people/people.h"
#include "argusd/kit/part.h"
#include "argusd/people/people_dirs.h"
#include "base/message.h"
#include "base/str.h"

enum token_state { TOKEN_WORKS, TOKEN_EXPIRED, TOKEN_REVOKED, TOKEN_DISABLED };
static const char *const state_names[] = {"works", "expired", "revoked", "disabled", NULL};

struct token_page {
    struct token token; /* borrowed */
    int state;          /* enum token_state */
    char *text;         /* of one that was just made; borrowed */
};
#define PAGE(member) offsetof(struct token_page, member)
static const struct field page_rows[] = {
    {.name = "",
     .type = FIELD_INLINE,
     .offset = PAGE(token),
     .of = &token_table,
     .flags = FIELD_BORROWED},
    {.name = "state",
     .type = FIELD_ENUM,
     .offset = PAGE(state),
     .names = state_names,
     .flags = FIELD_SHOWN},
    {.name = "token",
     .type = FIELD_STR,
     .offset = PAGE(text),
     .flags = FIELD_SHOWN | FIELD_OMIT | FIELD_BORROWED,
     .doc = "text of the token, in the reply that made it and never again"},
};
static const struct field_table page_table = {.name = "Token",
                                              .rows = page_rows,
                                              .n = array_len(page_rows),
                                              .size = sizeof(struct token_page)};

static enum token_state api_tokens_token_state(const struct api *a, const struct token *k)
{
    const struct person *p = people_find(a->people, k->user);
    if (k->revoked_at)
        return TOKEN_REVOKED;
    if (!token_works(k, clock_wall()))
        return TOKEN_EXPIRED;
    return p && !p->disabled ? TOKEN_WORKS : TOKEN_DISABLED;
}

static void token_fill(struct resource_ask *q, const void *x, void *out)
{
    struct token_page *page = out;
    page->token = *(const struct token *)x;
    page->state = (int)api_tokens_token_state(q->a, x);
    page->text = q->is_trail ? NULL : q->own;
}

/* ---- list ---- */

static const void *token_next(struct resource_ask *q, size_t *pos)
{
    return tokens_next(q->a->tokens, pos);
}

static int token_compare(const void *x, const void *y)
{
    const struct token *a = *(const struct token *const *)x, *b = *(const struct token *const *)y;
    int c = strcmp(a->user, b->user);
    if (c)
        return c;
    return a->created_at != b->created_at ? (a->created_at < b->created_at ? -1 : 1)
                                          : strcmp(a->id, b->id);
}

static bool token_wants(struct resource_ask *q, const void *x)
{
    const struct token *k = x;
    const char *user = http_req_query(q->req, "user");
    if (!user && !http_req_query_bool(q->req, "all", false))
        user = q->who.user;
    return (!user || str_eq(user, k->user)) &&
           (http_req_query_bool(q->req, "ended", false) || token_works(k, clock_wall()));
}

static int token_check_list(struct resource_ask *q)
{
    const char *user = http_req_query(q->req, "user");
    struct access_thing thing = {.kind = ACCESS_KIND_USER, .name = user, .owner = user};
    return user ? access_check(&q->who, ACCESS_TOKEN_SEE, "see the tokens of", &thing, &q->err) : 0;
}

static const void *token_find(struct resource_ask *q, const void *asked)
{
    (void)asked;
    return tokens_find(q->a->tokens, q->name);
}

/* ---- make ---- */

static const char *token_asked_user(struct resource_ask *q, const struct people_token_form *f)
{
    return str_or(f->user, http_req_principal(q->req)->user);
}

/* A new one is asked about as its user. */
static void token_thing(struct resource_ask *q,
                        const void *x,
                        const void *asked,
                        struct access_thing *ret)
{
    const struct token *k = x;
    if (k) {
        ret->name = k->id;
        ret->owner = k->user;
    } else {
        ret->kind = ACCESS_KIND_USER;
        ret->name = token_asked_user(q, asked);
        ret->owner = people_find(q->a->people, ret->name) ? ret->name : NULL;
    }
}

static char *token_object(const void *x)
{
    const struct token *k = x;
    return xasprintf("token/%s/%s", k->user, k->id);
}

/* How many of this user there are, working and in all. */
static void token_count(const struct api *a, const char *user, size_t *ret_works, size_t *ret_all)
{
    usec_t now = clock_wall();
    const struct token *k;
    *ret_works = *ret_all = 0;
    for (size_t pos = 0; (k = tokens_next(a->tokens, &pos));)
        if (str_eq(k->user, user)) {
            *ret_works += token_works(k, now);
            ++*ret_all;
        }
}

/* The role that the new one gets, as much as can be when none was asked for. */
static int token_choose_role(struct resource_ask *q, const struct person *p, int *role)
{
    const struct http_principal *asker = http_req_principal(q->req);
    bool own = str_eq(asker->user, p->name);
    int most = own && (int)asker->role < p->role ? (int)asker->role : p->role, asked = *role;
    *role = asked ? asked : most;
    if (asked > p->role)
        return message_refuse(&q->err, ERR_BAD_SPEC, "role_above_user",
                              MESSAGE_ARGS(MESSAGE_STR("role", people_role_names[asked]),
                                           MESSAGE_STR("name", p->name),
                                           MESSAGE_STR("is", people_role_names[p->role])));
    if (asked > most)
        return message_refuse(&q->err, ERR_FORBIDDEN, "role_above_token",
                              MESSAGE_ARGS(MESSAGE_STR("is", http_role_to_string(asker->role)),
                                           MESSAGE_STR("role", people_role_names[asked])));
    return 0;
}

static int token_check_room(struct resource_ask *q, const char *user)
{
    size_t works, all;
    token_count(q->a, user, &works, &all);
    if (all >= TOKENS_OF_USER_MAX) {
        tokens_forget(q->a->tokens, user, clock_wall());
        token_count(q->a, user, &works, &all);
    }
    if (works >= TOKENS_ACTIVE_MAX)
        return message_refuse(
            &q->err, ERR_REFUSED, "too_many_tokens",
            MESSAGE_ARGS(MESSAGE_STR("name", user), MESSAGE_NUM("tokens", works)));
    if (all >= TOKENS_OF_USER_MAX)
        return message_refuse(&q->err, ERR_BUSY, "tokens_of_month",
                              MESSAGE_ARGS(MESSAGE_STR("name", user), MESSAGE_NUM("tokens", all)));
    return 0;
}

static int token_check(struct resource_ask *q, const void *old, void *asked)
{
    struct people_token_form *f = asked;
    const char *user = token_asked_user(q, f);
    const struct person *p = people_find(q->a->people, user);
    (void)old;
    if (!p)
        return message_refuse(&q->err, ERR_NOT_FOUND, "no_such_user",
                              MESSAGE_ARGS(MESSAGE_STR("name", user)));
    int r = token_choose_role(q, p, &f->role);
    if (r == 0 && p->disabled)
        r = message_refuse(&q->err, ERR_CONFLICT, "user_disabled",
                           MESSAGE_ARGS(MESSAGE_STR("name", p->name)));
    return r < 0 ? r : token_check_room(q, p->name);
}

static int token_read(struct resource_ask *q, bool is_change, void *asked)
{
    int r = resource_read_form(q, is_change, asked);
    return r < 0 ? r : people_check_token(asked, &q->problems);
}

static const void *token_write(struct resource_ask *q, const void *old, void *asked)
{
    struct api *a = q->a;
    const struct people_token_form *f = asked;
    struct person *p = people_find(a->people, token_asked_user(q, f));
    usec_t now = clock_wall();
    char text[TOKEN_TEXT_MAX];
    (void)old;
    const struct token *k =
        tokens_add(a->tokens, str_or(f->name, ""), p->name, (enum http_role)f->role, now,
                   f->expires ? now + f->expires : 0, text);
    q->own = xstrdup(text);
    people_dirs_make(a->loop, a->cluster, a->settings->shared_root, a->people, p);
    return k;
}

/* ---- revoke ---- */

static int token_check_remove(struct resource_ask *q, const void *x)
{
    const struct token *k = x;
    if (k->role != HTTP_ROLE_ADMIN || !token_works(k, clock_wall()) ||
        api_count_admins(q->a, NULL, k->id) > 0)
        return 0;
    return message_refuse(&q->err, ERR_CONFLICT, "last_admin_token",
                          MESSAGE_ARGS(MESSAGE_STR("id", k->id)));
}

static bool token_take_away(struct resource_ask *q, const void *x)
{
    const struct token *k = x;
    if (k->revoked_at)
        return false;
    tokens_revoke(q->a->tokens, k, clock_wall());
    return true;
}

/* ---- the noun ---- */

static const struct resource token_noun = {
    .noun = "token",
    .kind = ACCESS_KIND_TOKEN,
    .collection = "tokens",
    .param = "token",
    .page = &page_table,
    .form = &people_token_form_table,
    .may_see = ACCESS_TOKEN_SEE,
    .may_change = ACCESS_TOKEN_CHANGE,
    .add = {"token_added", "make tokens of"},
    .remove = {"token_revoked", "revoke"},
    .flags = RESOURCE_STAYS | RESOURCE_ENDS,
    .check_list = token_check_list,
    .next = token_next,
    .wants = token_wants,
    .compare = token_compare,
    .find = token_find,
    .thing = token_thing,
    .object = token_object,
    .fill = token_fill,
    .read = token_read,
    .check = token_check,
    .write = token_write,
    .check_remove = token_check_remove,
    .take_away = token_take_away,
};

static const struct http_param list_params[] = {
    {"user", HTTP_PARAM_STRING, "this user's"},
    {"all", HTTP_PARAM_BOOLEAN, "everybody's (admins); your own if not given"},
    {"ended", HTTP_PARAM_BOOLEAN, "also those that expired or were revoked"},
    {0}};
static const struct http_route rows[] = {
    RESOURCE_LIST(&token_noun,
                  "/v1/tokens",
                  VIEWER,
                  "tokens, without their text",
                  .params = list_params,
                  .reply_schema = "TokenList"),
    RESOURCE_ADD(&token_noun,
                 "/v1/tokens",
                 USER,
                 "make a token; its text is shown this once",
                 .max_body = RESOURCE_BODY_MAX,
                 .request_schema = "TokenForm",
                 .reply_schema = "Token"),
    RESOURCE_REMOVE(&token_noun,
                    "/v1/tokens/{token}",
                    USER,
                    "revoke a token",
                    .reply_schema = "Token",
                    .example = "t1"),
};
static const struct http_schema schemas[] = {
    {.name = "TokenForm", .table = &people_token_form_table, .which = FIELD_ASKED, .is_form = true},
    {.name = "Token", .table = &page_table, .which = FIELD_SHOWN},
    LIST_OF("TokenList", "tokens", "Token"),
};
const struct api_part part_tokens = {rows, array_len(rows), schemas, array_len(schemas)};
