/* SPDX-License-Identifier: Apache-2.0 */
/* api_tokens.c - tokens: made (and shown once), listed, revoked.
 *
 * Nobody makes a token that may do more than the one in his hand, nor more than its user. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api_people.h"
#include "argusd/people_dirs.h"
#include "base/str.h"

enum { TOKEN_MAX_BYTES = 16 << 10 };

static const char *state_of(const struct api *a, const struct token *k, usec_t now)
{
    const struct person *p = people_find(a->people, k->user);
    if (k->revoked_at)
        return "revoked";
    if (!token_works(k, now))
        return "expired";
    return p && !p->disabled ? "works" : "disabled";
}

/* text: of one that was just made, else NULL. */
static void put_token(struct jout *j, const struct api *a, const struct token *k, const char *text)
{
    jout_open(j, NULL, '{');
    jout_str(j, "id", k->id);
    jout_str(j, "name", k->name);
    jout_str(j, "user", k->user);
    jout_str(j, "role", http_role_to_string(k->role));
    jout_str(j, "state", state_of(a, k, clock_wall()));
    jout_time(j, "created_at", k->created_at);
    jout_time(j, "expires_at", k->expires_at);
    jout_time(j, "last_use_at", k->last_use_at);
    jout_time(j, "revoked_at", k->revoked_at);
    if (text)
        jout_str(j, "token", text);
    jout_close(j, '}');
}

static char *token_text(const struct api *a, const struct token *k)
{
    struct buf out = BUF_INIT(TOKEN_MAX_BYTES);
    struct jout j = jout_begin(&out);
    put_token(&j, a, k, NULL);
    return buf_take(&out);
}

static void note(struct http_req *req,
                 struct api *a,
                 const char *kind,
                 const char *text,
                 const struct token *k,
                 char *before)
{
    _cleanup_(freep) char *object = xasprintf("token/%s/%s", k->user, k->id);
    struct api_change change = {
        .kind = kind, .object = object, .text = text, .before = before, .after = token_text(a, k)};
    api_people_note(req, a, &change);
}

/* ---- list ---- */

static int by_user_and_time(const void *x, const void *y)
{
    const struct token *a = *(const struct token *const *)x, *b = *(const struct token *const *)y;
    int c = strcmp(a->user, b->user);
    if (c)
        return c;
    return a->created_at != b->created_at ? (a->created_at < b->created_at ? -1 : 1)
                                          : strcmp(a->id, b->id);
}

struct wanted {
    const char *user; /* NULL = everybody's that he may see */
    bool ended;       /* those too that work no more */
};

static bool is_wanted(const struct access_who *who,
                      const struct wanted *w,
                      const struct token *k,
                      usec_t now)
{
    struct access_thing thing = {.kind = "token", .name = k->id, .owner = k->user};
    return (!w->user || str_eq(w->user, k->user)) && (w->ended || token_works(k, now)) &&
           access_check(who, ACCESS_TOKEN_SEE, "see", &thing, NULL) == 0;
}

static void answer_list(struct http_req *req,
                        struct api *a,
                        const struct access_who *who,
                        const struct wanted *w)
{
    struct buf out = BUF_INIT(API_PEOPLE_LIST_MAX);
    struct jout j = jout_begin(&out);
    const struct token **v = xcalloc(tokens_count(a->tokens) + 1, sizeof(void *)), *k;
    usec_t now = clock_wall();
    size_t n = 0;
    for (size_t pos = 0; (k = tokens_next(a->tokens, &pos));)
        if (is_wanted(who, w, k, now))
            v[n++] = k;
    xsort(v, n, sizeof(void *), by_user_and_time);
    jout_open(&j, NULL, '{');
    jout_open(&j, "tokens", '[');
    for (size_t i = 0; i < n; i++)
        put_token(&j, a, v[i], NULL);
    jout_close(&j, ']');
    jout_close(&j, '}');
    http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
    free(v);
}

void api_tokens(struct http_req *req, void *app)
{
    struct api *a = app;
    struct access_who who;
    people_who(a->people, http_req_principal(req), &who);
    bool all = http_req_query_bool(req, "all", false);
    const char *user = http_req_query(req, "user");
    struct wanted w = {.user = user  ? user
                               : all ? NULL
                                     : who.user,
                       .ended = http_req_query_bool(req, "ended", false)};
    struct access_thing thing = {.kind = "user", .name = str_or(user, ""), .owner = user};
    if (!user || api_people_may(req, a, ACCESS_TOKEN_SEE, "see the tokens of", &thing, false) == 0)
        answer_list(req, a, &who, &w);
}

/* ---- make ---- */

/* How many of his there are, working and in all. */
static void count_tokens(const struct api *a, const char *user, size_t *ret_works, size_t *ret_all)
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
static int choose_role(const struct http_principal *asker,
                       const struct person *p,
                       int asked,
                       enum http_role *ret,
                       struct err *err)
{
    bool own = str_eq(asker->user, p->name);
    int most = own && (int)asker->role < p->role ? (int)asker->role : p->role;
    *ret = (enum http_role)(asked ? asked : most);
    if (asked > p->role)
        return err_set(err, ERR_BAD_SPEC, "role '%s' is above that of user '%s', which is '%s'",
                       http_role_to_string(*ret), p->name,
                       http_role_to_string((enum http_role)p->role));
    if (asked > most)
        return err_set(err, ERR_FORBIDDEN, "a token of role '%s' makes none of role '%s'",
                       http_role_to_string(asker->role), http_role_to_string(*ret));
    return 0;
}

static int check_room(const struct api *a, const char *user, struct err *err)
{
    size_t works, all;
    count_tokens(a, user, &works, &all);
    if (all >= TOKENS_OF_USER_MAX) {
        tokens_forget(a->tokens, user, clock_wall());
        count_tokens(a, user, &works, &all);
    }
    if (works >= TOKENS_ACTIVE_MAX)
        return err_set(err, ERR_REFUSED, "'%s' has %zu tokens: revoke some first", user, works);
    if (all >= TOKENS_OF_USER_MAX)
        return err_set(err, ERR_BUSY,
                       "'%s' made %zu tokens within a month: those that ended are forgotten after "
                       "30 days",
                       user, all);
    return 0;
}

static void make_token(struct http_req *req,
                       struct api *a,
                       struct person *p,
                       const struct people_token_form *f)
{
    struct buf out = BUF_INIT(TOKEN_MAX_BYTES);
    struct jout j = jout_begin(&out);
    enum http_role role;
    char text[TOKEN_TEXT_MAX];
    struct err err = {0};
    usec_t now = clock_wall();
    int r = choose_role(http_req_principal(req), p, f->role, &role, &err);
    if (r == 0 && p->disabled)
        r = err_set(&err, ERR_CONFLICT, "user '%s' is disabled", p->name);
    if (r == 0)
        r = check_room(a, p->name, &err);
    if (r < 0) {
        api_fail(req, &err, api_barrier(a));
        return;
    }
    const struct token *k = tokens_add(a->tokens, str_or(f->name, ""), p->name, role, now,
                                       f->expires ? now + f->expires : 0, text);
    note(req, a, "token_added", "token made", k, NULL);
    people_dirs_make(a->loop, a->cluster, a->settings->shared_root, a->people, p);
    put_token(&j, a, k, text);
    http_reply_json(req, 201, &out, api_barrier(a));
    buf_release(&out);
}

void api_token_add(struct http_req *req, void *app)
{
    struct api *a = app;
    struct people_token_form f = {0};
    struct problems ps = {0};
    size_t n;
    const char *body = http_req_body(req, &n);
    if (people_form_token(body, n, &f, &ps) < 0) {
        api_answer_problems(req, &ps);
    } else {
        const char *user = str_or(f.user, http_req_principal(req)->user);
        struct person *p = people_find(a->people, user);
        struct access_thing thing = {.kind = "user", .name = user, .owner = p ? user : NULL};
        struct err err = {0};
        if (api_people_may(req, a, ACCESS_TOKEN_CHANGE, "make tokens of", &thing, true) == 0) {
            if (p)
                make_token(req, a, p, &f);
            else
                api_fail(req,
                         (err_set(&err, ERR_NOT_FOUND,
                                  "no user '%.60s': make him with 'argus user add'", user),
                          &err),
                         0);
        }
    }
    problems_release(&ps);
    people_token_form_release(&f);
}

/* ---- revoke ---- */

/* By id, or by the beginning of exactly one, of those that he may see. NULL: answered. */
static const struct token *find(struct http_req *req, struct api *a)
{
    const char *ref = http_req_param(req, "token");
    const struct token *k = tokens_find(a->tokens, ref);
    struct err err = {0};
    if (!k) {
        (void)err_set(&err, ERR_NOT_FOUND, "no token '%.60s'", ref); /* only fills err */
        api_fail(req, &err, 0);
        return NULL;
    }
    struct access_thing thing = {.kind = "token", .name = ref, .owner = k->user};
    return api_people_may(req, a, ACCESS_TOKEN_CHANGE, "revoke", &thing, true) == 0 ? k : NULL;
}

void api_token_revoke(struct http_req *req, void *app)
{
    struct api *a = app;
    const struct token *k = find(req, a);
    struct err err = {0};
    usec_t now = clock_wall();
    if (!k)
        return;
    if (k->role == HTTP_ROLE_ADMIN && token_works(k, now) &&
        api_count_admins(a, NULL, k->id) == 0) {
        (void)err_set(&err, ERR_CONFLICT,
                      "'%s' is the last token of an admin: make another one before",
                      k->id); /* only fills err */
        api_fail(req, &err, api_barrier(a));
        return;
    }
    struct buf out = BUF_INIT(TOKEN_MAX_BYTES);
    struct jout j = jout_begin(&out);
    if (!k->revoked_at) {
        char *before = token_text(a, k);
        tokens_revoke(a->tokens, k, now);
        note(req, a, "token_revoked", "token revoked", k, before);
    }
    put_token(&j, a, k, NULL);
    http_reply_json(req, 200, &out, api_barrier(a));
    buf_release(&out);
}
