/* SPDX-License-Identifier: Apache-2.0 */
/* saying.c - which names somebody may hear; see saying.h. */
#include "argusd/kit/saying.h"

#include "base/str.h"

static enum message_hearing hear_job(const struct saying_to *to, const char *name)
{
    struct api_eyes eyes = *to->eyes;
    if (str_eq(name, to->about))
        return MESSAGE_NAMED;
    if (!jobs_find_any(eyes.a->jobs, name))
        return MESSAGE_OVER;
    return api_sees_job(name, &eyes) ? MESSAGE_NAMED : MESSAGE_ANOTHERS;
}

static bool hears_project(const struct api_eyes *eyes, const char *name)
{
    struct access_thing thing = {.kind = ACCESS_KIND_PROJECT, .name = name, .project = name};
    struct access_who who;
    people_who(eyes->a->people, eyes->p, &who);
    return str_eq(name, ACCESS_DEFAULT_PROJECT) ||
           access_check(&who, ACCESS_PROJECT_SEE, "see", &thing, NULL) == 0;
}

static enum message_hearing hears(enum message_name kind, const char *name, void *arg)
{
    const struct saying_to *to = arg;
    bool named = true;
    if (to->sees_all || kind == MESSAGE_NO_NAME)
        return MESSAGE_NAMED;
    if (!to->eyes)
        return kind == MESSAGE_JOB && str_eq(name, to->about) ? MESSAGE_NAMED : MESSAGE_ANOTHERS;
    if (kind == MESSAGE_JOB)
        return hear_job(to, name);
    if (kind == MESSAGE_PROJECT)
        named = hears_project(to->eyes, name);
    else
        named = str_eq(name, to->eyes->p->user);
    return named ? MESSAGE_NAMED : MESSAGE_ANOTHERS;
}

struct message_listener saying_listener(struct saying_to *to)
{
    if (to->eyes) {
        struct access_who who;
        people_who(to->eyes->a->people, to->eyes->p, &who);
        to->sees_all = who.sees_all;
    }
    return (struct message_listener){
        .language = to->eyes ? to->eyes->p->language : MESSAGE_ENGLISH, .hears = hears, .arg = to};
}

void saying_say(const struct api_eyes *eyes,
                const char *about,
                const char *code,
                const char *text,
                struct said *ret)
{
    struct saying_to to = {.eyes = eyes, .about = about};
    struct message_listener listener = saying_listener(&to);
    *ret = (struct said){.code = str_or(code, "")};
    message_page(code, text, &listener, &ret->page);
    ret->text = ret->page.text;
    ret->fix = ret->page.fix;
    ret->args = str_or(ret->page.args, "null");
}

void said_release(struct said *s)
{
    message_page_release(&s->page);
}

static const struct field said_rows[] = {
    FIELD_AT(said, "code", FIELD_STR, code, .flags = FIELD_ALWAYS),
    FIELD_AT(said, "text", FIELD_STR, text, .flags = FIELD_ALWAYS),
    FIELD_AT(said,
             "args",
             FIELD_JSON,
             args,
             .flags = FIELD_OMIT | FIELD_BORROWED,
             .schema = MESSAGE_ARGS_SCHEMA),
};
const struct field_table said_table = FIELD_TABLE("Reason", said_rows, said);
