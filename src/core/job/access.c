/* SPDX-License-Identifier: Apache-2.0 */
/* access.c - the table of access.h, and the two steps of every question: how he who asks is
 * related to the thing, then the cell. Nothing else in Argus compares roles or owners. */
#include "core/job/access.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"

/* Beyond the roles, in a cell: */
enum { ACCESS_NOBODY = ACCESS_ADMIN + 1, ACCESS_HIDDEN };

static const struct {
    int least[ACCESS_RELATIONS];
    const char *who;
} rows[] = {
#define X(e, own, shared, seen, other, who)                                                        \
    {{ACCESS_##own, ACCESS_##shared, ACCESS_##seen, ACCESS_##other}, who},
    ACCESS_TABLE(X)
#undef X
};

static const struct {
    const char *said, *word;
    enum access_action see;
} kinds[] = {
#define X(e, said, word, see) {said, word, ACCESS_##see},
    ACCESS_KIND_TABLE(X)
#undef X
};

const char *access_kind_to_string(enum access_kind kind)
{
    return kinds[kind].word;
}

enum access_action access_kind_see(enum access_kind kind)
{
    return kinds[kind].see;
}

enum access_answer access_ask(enum access_action action,
                              enum access_relation relation,
                              enum access_role role)
{
    int least = rows[action].least[relation];
    if (least == ACCESS_HIDDEN)
        return ACCESS_HIDE;
    return least != ACCESS_NOBODY && (int)role >= least ? ACCESS_ALLOW : ACCESS_DENY;
}

enum access_relation access_relation(const struct access_who *who,
                                     const char *owner,
                                     const char *project)
{
    if (owner && str_eq(who->user, owner))
        return ACCESS_OWN;
    if (project && *project && str_list_has(who->projects, project))
        return ACCESS_SHARED;
    return who->sees_all ? ACCESS_SEEN : ACCESS_OTHER;
}

void access_list_seen(enum access_relation relation,
                      enum access_role role,
                      char ret[static ACCESS_KINDS_TEXT])
{
    size_t len = 0;
    for (int k = 0; k < ACCESS_KINDS; k++) {
        if (access_ask(kinds[k].see, relation, role) != ACCESS_ALLOW)
            continue;
        int n = snprintf(ret + len, ACCESS_KINDS_TEXT - len, "%s%s", len ? "," : "", kinds[k].word);
        assert(n > 0 && (size_t)n < ACCESS_KINDS_TEXT - len);
        len += (size_t)n;
    }
    ret[len] = 0;
}

bool access_sees_all_events(const struct access_who *who)
{
    return who->sees_all && access_ask(ACCESS_EVENTS_SEE, ACCESS_SEEN, who->role) == ACCESS_ALLOW;
}

bool access_sees_answers(const struct access_who *who)
{
    return who->role >= ACCESS_ADMIN;
}

int access_check_name(const char *what, const char *name, struct err *err)
{
    size_t n = strlen(name);
    bool ok = n > 0 && n <= ACCESS_NAME_MAX && isalnum((unsigned char)*name);
    for (const char *s = name; ok && *s; s++)
        ok = islower((unsigned char)*s) || isdigit((unsigned char)*s) || strchr("_.-", *s);
    return ok ? 0
              : message_refuse(err, ERR_BAD_SPEC, "bad_name",
                               MESSAGE_ARGS(MESSAGE_STR("name", *name ? name : " "),
                                            MESSAGE_STR("noun", what),
                                            MESSAGE_NUM("most", ACCESS_NAME_MAX)));
}

static int job_access_check(const struct access_who *who,
                            enum access_action action,
                            enum access_relation relation,
                            const char *verb,
                            const struct access_thing *thing,
                            struct err *err)
{
    switch (access_ask(action, relation, who->role)) {
    case ACCESS_ALLOW:
        return 0;
    case ACCESS_HIDE:
        return message_refuse(err, ERR_NOT_FOUND, "not_found",
                              MESSAGE_ARGS(MESSAGE_STR("noun", kinds[thing->kind].said),
                                           MESSAGE_STR("name", thing->name)));
    case ACCESS_DENY:
        break;
    }
    return message_refuse(
        err, ERR_FORBIDDEN, "forbidden",
        MESSAGE_ARGS(MESSAGE_NUM(relation == ACCESS_OWN ? "by_token" : "", 1),
                     MESSAGE_STR("verb", verb), MESSAGE_STR("noun", kinds[thing->kind].said),
                     MESSAGE_STR("name", thing->name), MESSAGE_STR("only", rows[action].who)));
}

static bool access_is_shared(const struct access_who *who, const struct strv *shared)
{
    static const char user[] = "user/", project[] = "project/";
    for (size_t i = 0; shared && i < shared->n; i++) {
        const char *with = shared->v[i];
        if (str_starts(with, user)
                ? str_eq(with + strlen(user), who->user)
                : str_starts(with, project) && str_list_has(who->projects, with + strlen(project)))
            return true;
    }
    return false;
}

int access_check(const struct access_who *who,
                 enum access_action action,
                 const char *verb,
                 const struct access_thing *thing,
                 struct err *err)
{
    enum access_relation relation = access_relation(who, thing->owner, thing->project);
    if (relation != ACCESS_OWN && (thing->is_common || access_is_shared(who, thing->shared)))
        relation = ACCESS_SHARED;
    return job_access_check(who, action, relation, verb, thing, err);
}

int access_check_common(const struct access_who *who,
                        enum access_action action,
                        const char *verb,
                        const struct access_thing *thing,
                        struct err *err)
{
    return job_access_check(who, action, ACCESS_SHARED, verb, thing, err);
}

int access_check_submit(const struct access_who *who, const char *project, struct err *err)
{
    struct access_thing thing = {.kind = ACCESS_KIND_PROJECT, .name = project};
    bool open = who->any_project || str_eq(project, ACCESS_DEFAULT_PROJECT);
    enum access_relation relation = open ? ACCESS_SHARED : access_relation(who, NULL, project);
    return job_access_check(who, ACCESS_SUBMIT, relation, "submit to", &thing, err);
}
