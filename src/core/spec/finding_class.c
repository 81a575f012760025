/* SPDX-License-Identifier: Apache-2.0 */
/* finding_class.c - looks the columns of FINDING_TABLE up. */
#include "core/spec/finding_class.h"

#include <assert.h>

#include "base/str.h"

static const struct {
    const char *word, *meaning;
    unsigned flags;
} CLASSES[] = {
#define X(e, word, flags, meaning) {word, meaning, flags},
    FINDING_TABLE(X)
#undef X
};
static_assert(array_len(CLASSES) == FINDING_CLASS_COUNT, "one row per class");

const char *finding_class_to_string(enum finding_class c)
{
    return CLASSES[c].word;
}

const char *finding_class_meaning(enum finding_class c)
{
    return CLASSES[c].meaning;
}

int finding_class_from_string(const char *word)
{
    for (int i = 0; i < FINDING_CLASS_COUNT; i++)
        if (str_eq(CLASSES[i].word, word))
            return i;
    return -1;
}

bool finding_class_is(enum finding_class c, enum finding_flags flag)
{
    return CLASSES[c].flags & flag;
}

bool finding_class_tells(enum finding_class c)
{
    return c != FINDING_NONE && c != FINDING_UNKNOWN;
}
