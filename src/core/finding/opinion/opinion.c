/* SPDX-License-Identifier: Apache-2.0 */
/* opinion.c - see opinion.h.
 *
 * A request is read member by member, since a stranger wrote it; an event of ours is read
 * leniently, since a newer argusd may have written it. */
#include "core/finding/opinion/opinion.h"

#include <math.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "core/spec/finding_class.h"

enum { PATCH_MAX = 16 << 10 };

static const char *const sources[] = {OPINION_GIVEN, OPINION_ASKED};

#define OPINION(key, ftype, member, ...) FIELD_AT(opinion, key, ftype, member, __VA_ARGS__)
#define ASKED (FIELD_ASKED | FIELD_STORED | FIELD_SHOWN)
#define KEPT (FIELD_STORED | FIELD_SHOWN)
static const struct field opinion_rows[] = {
    OPINION("id", FIELD_INT, id, .flags = FIELD_SHOWN, .doc = "the number of its event"),
    OPINION("at", FIELD_TIME, at, .flags = FIELD_SHOWN | FIELD_ALWAYS),
    OPINION("source",
            FIELD_STR,
            source,
            .flags = KEPT | FIELD_ALWAYS,
            .schema = "{\"enum\":[\"" OPINION_GIVEN "\",\"" OPINION_ASKED "\"]}",
            .doc = "given by a request, or asked of a model by argusd"),
    OPINION("author", FIELD_STR, author, .flags = KEPT | FIELD_ALWAYS, .doc = "a user, or argusd"),
    OPINION("model", FIELD_STR, model, .flags = KEPT, .doc = "that was asked"),
    OPINION("attempt", FIELD_INT, attempt, .flags = ASKED, .doc = "the newest if not given"),
    OPINION("class", FIELD_STR, class, .flags = ASKED, .doc = "a class of failure"),
    OPINION("confidence",
            FIELD_REAL,
            confidence,
            .max = 1,
            .flags = ASKED | FIELD_MAYBE,
            .doc = "0 to 1"),
    OPINION("cause", FIELD_STR, cause, .flags = ASKED | FIELD_ALWAYS | FIELD_REQUIRED),
    OPINION("advice", FIELD_STR, advice, .flags = ASKED),
    OPINION("link", FIELD_STR, link, .flags = ASKED, .doc = "http or https"),
    OPINION("patch",
            FIELD_JSON,
            patch,
            .flags = ASKED,
            .schema = "{\"type\":[\"object\",\"null\"],\"additionalProperties\":{\"description\":"
                      "\"a value of the JobSpec, null to take it away\"}}",
            .doc = "what a retry may change in the spec"),
};
#undef OPINION
const struct field_table opinion_table = FIELD_TABLE("Opinion", opinion_rows, opinion);

/* ---- of strangers ---- */

static const struct opinion_text {
    const char *key;
    size_t offset, max;
    bool is_required;
} opinion_texts[] = {
    {"cause", offsetof(struct opinion, cause), 2000, true},
    {"advice", offsetof(struct opinion, advice), 4000, false},
    {"class", offsetof(struct opinion, class), 60, false},
    {"link", offsetof(struct opinion, link), 500, false},
};

static int opinion_complain(const char *code, const char *member, struct err *err)
{
    return message_refuse(err, ERR_BAD_REQUEST, code, MESSAGE_ARGS(MESSAGE_STR("member", member)));
}

static int opinion_read_text(const json_t *body,
                             const struct opinion_text *t,
                             struct opinion *ret,
                             struct err *err)
{
    char *said = NULL;
    const json_t *v = json_object_get(body, t->key);
    const char *text = json_string_value(v);
    if (v && !json_is_null(v) && !text)
        return opinion_complain("opinion_text", t->key, err);
    if (t->is_required && (!text || !*text))
        return opinion_complain("opinion_given", t->key, err);
    if (text && strlen(text) > t->max)
        return opinion_complain("opinion_short", t->key, err);
    if (text && *text)
        set_str(&said, text);
    memcpy((char *)ret + t->offset, &said, sizeof(said));
    return 0;
}

static bool link_is_good(const char *link)
{
    for (const char *s = link; *s; s++)
        if ((unsigned char)*s <= ' ' || *s == 0x7f)
            return false;
    return str_starts(link, "http://") || str_starts(link, "https://");
}

static int opinion_read_patch(const json_t *body, struct opinion *ret, struct err *err)
{
    const json_t *v = json_object_get(body, "patch");
    if (!v || json_is_null(v))
        return 0;
    if (!json_is_object(v))
        return opinion_complain("opinion_object", "patch", err);
    ret->patch = json_dumps(v, JSON_COMPACT);
    return ret->patch && strlen(ret->patch) > PATCH_MAX
               ? opinion_complain("opinion_short", "patch", err)
               : 0;
}

static int opinion_read_numbers(const json_t *body, struct opinion *ret, struct err *err)
{
    const json_t *attempt = json_object_get(body, "attempt");
    const json_t *sure = json_object_get(body, "confidence");
    ret->confidence = (double)NAN;
    if (attempt && !json_is_null(attempt) && !json_is_integer(attempt))
        return opinion_complain("opinion_number", "attempt", err);
    if (sure && !json_is_null(sure) && !json_is_number(sure))
        return opinion_complain("opinion_number", "confidence", err);
    if (json_is_integer(attempt))
        ret->attempt = json_integer_value(attempt);
    if (json_is_number(sure))
        ret->confidence = json_number_value(sure);
    if (ret->confidence < 0 || ret->confidence > 1)
        return opinion_complain("opinion_ratio", "confidence", err);
    return 0;
}

/* Members that only a page has may not stand in a request. */
static int opinion_check_keys(json_t *body, struct err *err)
{
    const char *key;
    json_t *v;
    json_object_foreach (body, key, v) {
        bool known = false;
        for (size_t i = 0; i < array_len(opinion_rows); i++)
            known =
                known || (opinion_rows[i].flags & FIELD_ASKED && str_eq(opinion_rows[i].name, key));
        if (!known)
            return opinion_complain("unknown_member", key, err);
    }
    return 0;
}

int opinion_read(json_t *body, struct opinion *ret, struct err *err)
{
    struct opinion o = {0};
    int r = opinion_check_keys(body, err);
    if (r == 0)
        r = opinion_read_numbers(body, &o, err);
    for (size_t i = 0; r == 0 && i < array_len(opinion_texts); i++)
        r = opinion_read_text(body, &opinion_texts[i], &o, err);
    if (r == 0 && o.class && finding_class_from_string(o.class) < 0)
        r = opinion_complain("opinion_class", "class", err);
    if (r == 0 && o.link && !link_is_good(o.link))
        r = opinion_complain("opinion_link", "link", err);
    if (r == 0)
        r = opinion_read_patch(body, &o, err);
    if (r < 0)
        field_release(&opinion_table, &o);
    else
        *ret = o;
    return r;
}

bool opinion_from_event(const char *data, int64_t seq, usec_t at, struct opinion *ret)
{
    struct opinion o = {.confidence = (double)NAN};
    bool good = field_from_text(&opinion_table, data, FIELD_STORED, &o) && o.cause && o.source;
    for (size_t i = 0; good && i <= array_len(sources); i++)
        if (i == array_len(sources))
            good = false;
        else if (!strcmp(o.source, sources[i]))
            break;
    if (good && !o.author)
        set_str(&o.author, "argusd");
    if (!good) {
        field_release(&opinion_table, &o);
        return false;
    }
    o.id = seq;
    o.at = at;
    *ret = o;
    return true;
}
