/* SPDX-License-Identifier: Apache-2.0 */
/* family.c - see family.h. Each list of children is a chain through `next`, and the walk has a
 * cursor in each: it looks at every child once, so that its time is that of the members, whatever
 * the form of the tree. */
#include "core/job/family.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/message.h"
#include "base/order/place.h"
#include "base/str.h"

const char *const family_how_words[FAMILY_HOWS + 1] = {"",     "retry",  "fork", "resume",
                                                       "eval", "export", NULL};
static_assert(FAMILY_EXPORT == 5, "each has its word");

enum family_how family_how_from_string(const char *word)
{
    for (enum family_how how = FAMILY_RETRY; word && how < FAMILY_HOWS; how++)
        if (!strcmp(word, family_how_words[how]))
            return how;
    return FAMILY_NONE;
}

/* U+2028 and U+2029: what ends a line without being a control character. */
static bool family_ends_line(const char *s)
{
    return !strncmp(s, "\xe2\x80\xa8", 3) || !strncmp(s, "\xe2\x80\xa9", 3);
}

bool family_is_note(const char *text)
{
    size_t n = strlen(text);
    if (n > FAMILY_NOTE_MAX || str_has_control(text))
        return false;
    for (size_t len; n; text += len, n -= len) {
        len = str_utf8_length(text, n);
        if (!len || family_ends_line(text))
            return false;
    }
    return true;
}

int family_check_note(const char *given, const char **ret, struct err *err)
{
    if (given && !family_is_note(given))
        return message_refuse(err, ERR_BAD_REQUEST, "bad_note",
                              MESSAGE_ARGS(MESSAGE_NUM("most", FAMILY_NOTE_MAX)));
    *ret = given && *given ? given : NULL;
    return 0;
}

int family_read_note(const json_t *given, const char **ret, struct err *err)
{
    if (given && !json_is_null(given) && !json_is_string(given))
        return message_refuse(err, ERR_BAD_REQUEST, "no_text_member",
                              MESSAGE_ARGS(MESSAGE_STR("member", "note")));
    return family_check_note(json_string_value(given), ret, err);
}

/* ---- the tree ---- */

struct family_name {
    const char *id;
    size_t member;
};

/* By id; where several have one, the first of the list goes first. */
static int family_compare(const void *a, const void *b)
{
    const struct family_name *x = a, *y = b;
    int c = strcmp(x->id, y->id);
    return c ? c : (x->member > y->member) - (x->member < y->member);
}

struct family_tree {
    size_t *parent, *child, *next; /* by member; child: the one that the walk looks at next */
    bool *is_placed;
    struct family_place *out;
    size_t n_out;
};

static struct family_name *family_names(const struct family_member *v, size_t n)
{
    struct family_name *names = xcalloc(n + 1, sizeof(*names));
    for (size_t i = 0; i < n; i++)
        names[i] = (struct family_name){v[i].id, i};
    qsort(names, n, sizeof(*names), family_compare);
    return names;
}

static int family_to_name(const void *key, const void *element)
{
    return strcmp(key, ((const struct family_name *)element)->id);
}

static size_t family_find_member(const struct family_name *names, size_t n, const char *id)
{
    size_t at = id ? place_of(id, names, n, sizeof(*names), family_to_name) : n;
    return at < n && !strcmp(names[at].id, id) ? names[at].member : FAMILY_NOBODY;
}

static void family_link(struct family_tree *t, const struct family_member *v, size_t n)
{
    struct family_name *names = family_names(v, n);
    for (size_t i = 0; i < n; i++)
        t->parent[i] = t->child[i] = t->next[i] = FAMILY_NOBODY;
    for (size_t i = n; i-- > 0;) { /* backwards: the first child stands first */
        size_t p = family_find_member(names, n, v[i].parent);
        if (p == FAMILY_NOBODY || p == i)
            continue;
        t->parent[i] = p;
        t->next[i] = t->child[p];
        t->child[p] = i;
    }
    free(names);
}

static void family_put(struct family_tree *t, size_t member, size_t parent, int depth)
{
    t->is_placed[member] = true;
    t->out[t->n_out++] = (struct family_place){member, parent, depth};
}

static size_t family_next_child(struct family_tree *t, size_t of)
{
    size_t c = t->child[of];
    while (c != FAMILY_NOBODY && t->is_placed[c])
        c = t->next[c];
    t->child[of] = c == FAMILY_NOBODY ? c : t->next[c];
    return c;
}

/* Down to the first child, and up where none is left, without a stack. */
static void family_walk(struct family_tree *t, size_t root)
{
    int depth = 0;
    size_t at = root;
    family_put(t, root, FAMILY_NOBODY, 0);
    while (depth > 0 || t->child[at] != FAMILY_NOBODY) {
        size_t c = family_next_child(t, at);
        if (c != FAMILY_NOBODY) {
            family_put(t, c, at, ++depth);
            at = c;
        } else if (depth > 0) {
            at = t->parent[at];
            depth--;
        }
    }
}

void family_order(const struct family_member *v, size_t n, struct family_place *ret)
{
    struct family_tree t = {.parent = xcalloc(n + 1, sizeof(*t.parent)),
                            .child = xcalloc(n + 1, sizeof(*t.child)),
                            .next = xcalloc(n + 1, sizeof(*t.next)),
                            .is_placed = xcalloc(n + 1, sizeof(*t.is_placed)),
                            .out = ret};
    family_link(&t, v, n);
    for (size_t i = 0; i < n; i++)
        if (t.parent[i] == FAMILY_NOBODY)
            family_walk(&t, i);
    for (size_t i = 0; i < n; i++) /* what is left are circles, and what hangs on them */
        if (!t.is_placed[i])
            family_walk(&t, i);
    assert(t.n_out == n);
    free(t.parent);
    free(t.child);
    free(t.next);
    free(t.is_placed);
}
