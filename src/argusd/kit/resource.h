/* SPDX-License-Identifier: Apache-2.0 */
/* resource.h - a noun of the API as one row: what it is called, its members, who may see and change
 * it, and the few functions that are its own. From the row come list, look, add, change, put and
 * remove over HTTP, with the access check, the refusal, the audit event with before and after, the
 * reply and its barrier.
 *
 * A handler is written by hand only where something is done that no row can say; it may use the
 * steps below. Objects stay with their service: they are borrowed for the request. A function of a
 * row that refuses fills err (or problems, field) of the request and returns a negative code,
 * or NULL; the refusal is sent by the caller. */
#pragma once
#include "argusd/kit/api.h"
#include "base/field.h"

enum { RESOURCE_SHOWN = 200, RESOURCE_SHOWN_MAX = 2000 };
enum { RESOURCE_BODY_MAX = 64 << 10, RESOURCE_SAID_MAX = 256, RESOURCE_WORD_MAX = 128 };

struct resource;

/* One request about a noun. */
struct resource_ask {
    const struct resource *of;
    struct http_req *req;
    struct api *a;
    struct access_who who; /* who asks */
    const char *name;      /* that the path names; NULL = none */
    bool is_trail;         /* what is filled is for the audit event, which others read */
    void *own;             /* heap, NULL at first: what the row's functions share */
    /* of a refusal */
    struct err err;
    const char *field;
    struct problems problems;
    char word[RESOURCE_WORD_MAX]; /* room for a text of thing() */
    /* What the event says, where its kind alone is not enough: see resource_say(). */
    const char *said_code;
    char said[RESOURCE_SAID_MAX];
};

/* An act: the kind of its event ("user_added"), which the catalogue has as a code, and its word in
 * a refusal ("make"). */
struct resource_act {
    const char *kind; /* NULL: no event, or the service's own */
    const char *verb;
};

enum resource_flags {
    RESOURCE_STAYS = 1 << 0, /* what is removed is still there: the reply shows it as it is then */
    RESOURCE_ENDS = 1 << 1,  /* and so does the event */
    RESOURCE_CUT = 1 << 2,   /* of its list the first ?limit= are shown, see RESOURCE_SHOWN */
    RESOURCE_PAGES = 1 << 3, /* and next_cursor is where ?cursor= goes on; not with compare() */
};

struct resource {
    const char *noun;       /* "project": in sentences */
    enum access_kind kind;  /* what access and events are about, unless thing() says another */
    const char *collection; /* "projects": the one member of a list */
    const char *param;      /* of the path; NULL = none */
    /* The page: rows FIELD_SHOWN, in a list those of `item`, in audit events those of `trail`. */
    const struct field_table *page;
    unsigned item, trail; /* 0 = FIELD_SHOWN */
    /* The body: rows FIELD_ASKED. Where there is PATCH it begins with the object itself. */
    const struct field_table *form;
    enum access_action may_see, may_change;
    struct resource_act add, change, remove;
    unsigned flags; /* enum resource_flags */

    /* May he ask for the list that he asks for? NULL = everybody. */
    int (*check_list)(struct resource_ask *q);
    /* All that a list may show, one after the other; NULL at the end. *pos begins at 0. */
    const void *(*next)(struct resource_ask *q, size_t *pos);
    /* Is it what the request's parameters ask for? NULL: all is that may be seen. */
    bool (*wants)(struct resource_ask *q, const void *x);
    /* Orders two pointers to objects; NULL: the list is as next() gives it. */
    int (*compare)(const void *a, const void *b);
    /* The one that is asked for; NULL: there is none, and q->err may say so. With the body of a PUT
     * that may make a new one, NULL is no refusal. */
    const void *(*find)(struct resource_ask *q, const void *asked);
    /* What access is asked about, and (is_trail) what an event is about: *ret has the kind. x NULL:
     * a new one, as asked. */
    void (*thing)(struct resource_ask *q,
                  const void *x,
                  const void *asked,
                  struct access_thing *ret);
    /* In place of the access check; NULL = access_check(). */
    int (*may)(struct resource_ask *q, enum access_action action, const char *verb, const void *x);
    /* "user/alice/snapshot/x": what an event is about, heap; NULL = noun and name of thing(). */
    char *(*object)(const void *x);
    /* The page of x, zeroed memory; NULL: x is the page. */
    void (*fill)(struct resource_ask *q, const void *x, void *page);
    /* What an audit event shows of x, heap; NULL = rows `trail` of the page. */
    char *(*tell)(const void *x);
    /* The body, into the defaults or a copy; NULL = resource_read_form(). */
    int (*read)(struct resource_ask *q, bool is_change, void *asked);
    /* Everything that may be wrong with what is asked. old NULL: a new one. */
    int (*check)(struct resource_ask *q, const void *old, void *asked);
    /* Does it, and stores it. NULL: refused. */
    const void *(*write)(struct resource_ask *q, const void *old, void *asked);
    /* When the event of it was added. */
    void (*after)(struct resource_ask *q, const void *x);
    int (*check_remove)(struct resource_ask *q, const void *x);
    /* The answer to a removal with ?dry_run: what it would break. Nothing is done. NULL: the noun
     * has no such question. */
    void (*plan_remove)(struct resource_ask *q, const void *x);
    /* Takes x away. false: x stays, there was nothing to do, and no event is told. What goes was
     * noted before. */
    bool (*take_away)(struct resource_ask *q, const void *x);
};

/* Handlers; the route's arg is the struct resource. */
void resource_list(struct http_req *req, void *app);
void resource_get(struct http_req *req, void *app);
void resource_add(struct http_req *req, void *app);    /* POST */
void resource_change(struct http_req *req, void *app); /* PATCH: what is not given stays */
/* PUT: the whole; makes a new one where the row's `add` has a verb. */
void resource_put(struct http_req *req, void *app);
void resource_remove(struct http_req *req, void *app);

/* ---- their steps, for handlers by hand ---- */

/* To change, the store must be able to take it. */
enum resource_need { RESOURCE_TO_SEE, RESOURCE_TO_CHANGE };

void resource_begin(struct resource_ask *q, struct http_req *req, void *app);
/* The same about a noun that is not the route's, and about none of its objects by name: for who
 * shows things of several nouns in one reply. */
void resource_begin_of(struct resource_ask *q,
                       const struct resource *of,
                       struct http_req *req,
                       struct api *a);
void resource_end(struct resource_ask *q);
/* The object that the path names, if who asks may do this. NULL: refused. */
const void *resource_find(struct resource_ask *q, enum resource_need need, const char *verb);
/* What access is asked about x; borrowed from x, and from q until the next such question. */
struct access_thing resource_thing(struct resource_ask *q, const void *x);
/* Does the list show x to who asks, if nothing narrows it? */
bool resource_sees(struct resource_ask *q, const void *x);
/* May he? x NULL: make a new one, as asked. */
must_check int resource_may(struct resource_ask *q,
                            enum resource_need need,
                            const char *verb,
                            const void *x,
                            const void *asked);
/* Can the store take a change now? ERR_STORE. */
must_check int resource_can_store(struct resource_ask *q);
must_check int resource_read_form(struct resource_ask *q, bool is_change, void *asked);
/* The event of this request says this message. */
void resource_say(struct resource_ask *q, const char *code, const struct message_arg *args);
void resource_note(struct resource_ask *q,
                   const struct resource_act *act,
                   const void *x,
                   char *before_taken,
                   char *after_taken);
/* What an audit event shows of x. Heap. */
char *resource_trail(struct resource_ask *q, const void *x);
void resource_reply(struct resource_ask *q, const void *x, int status, uint64_t barrier);
void resource_refuse(struct resource_ask *q);

/* ---- rows of a route table ---- */

#define RESOURCE_ROUTE(verb, does, noun, path, role, words, ...)                                   \
    {                                                                                              \
        .method = verb, .pattern = path, .least = HTTP_ROLE_##role, .handle = does, .arg = noun,   \
        .summary = words, __VA_ARGS__                                                              \
    }
#define RESOURCE_LIST(noun, path, role, words, ...)                                                \
    RESOURCE_ROUTE("GET", resource_list, noun, path, role, words, __VA_ARGS__)
#define RESOURCE_GET(noun, path, role, words, ...)                                                 \
    RESOURCE_ROUTE("GET", resource_get, noun, path, role, words, __VA_ARGS__)
#define RESOURCE_ADD(noun, path, role, words, ...)                                                 \
    RESOURCE_ROUTE("POST", resource_add, noun, path, role, words, .reply_status = 201, __VA_ARGS__)
#define RESOURCE_CHANGE(noun, path, role, words, ...)                                              \
    RESOURCE_ROUTE("PATCH", resource_change, noun, path, role, words, __VA_ARGS__)
#define RESOURCE_PUT(noun, path, role, words, ...)                                                 \
    RESOURCE_ROUTE("PUT", resource_put, noun, path, role, words, __VA_ARGS__)
#define RESOURCE_REMOVE(noun, path, role, words, ...)                                              \
    RESOURCE_ROUTE("DELETE", resource_remove, noun, path, role, words, __VA_ARGS__)
