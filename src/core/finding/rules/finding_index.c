/* SPDX-License-Identifier: Apache-2.0 */
/* finding_index.c - see finding_index.h.
 *
 * Of each alternative the rarest text is looked for; where none can be read off it, the texts
 * that the rule's 'find' lists. A line that has one is held against the rest of that
 * alternative only, which is cheap, and seldom against the pattern itself, which is not. */
#include "core/finding/rules/finding_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/finding/rules/finding_rule.h"

struct branch_ref {
    const struct pattern_branch *branch;
    unsigned number;
};

/* The alternatives that one text is of. */
struct refs {
    struct branch_ref *v;
    size_t n;
};

struct finding_index {
    struct needles *needles;
    struct refs *of; /* by needle */
    size_t n;
};

struct finding_index *finding_index_new(void)
{
    struct finding_index *ix = xcalloc(1, sizeof(*ix));
    ix->needles = needles_new();
    return ix;
}

void finding_index_free(struct finding_index *ix)
{
    if (!ix)
        return;
    for (size_t i = 0; i < ix->n; i++)
        free(ix->of[i].v);
    free(ix->of);
    needles_free(ix->needles);
    free(ix);
}

static void finding_index_add_text(struct finding_index *ix,
                                   const char *text,
                                   struct branch_ref ref)
{
    unsigned needle = needles_add(ix->needles, text, strlen(text));
    if (needle >= ix->n) {
        ix->of = xrealloc(ix->of, needle + 1, sizeof(*ix->of));
        ix->of[needle] = (struct refs){0};
        ix->n = needle + 1;
    }
    struct refs *of = &ix->of[needle];
    of->v = xrealloc(of->v, of->n + 1, sizeof(*of->v));
    of->v[of->n++] = ref;
}

void finding_index_add(struct finding_index *ix, const struct finding_rule *r)
{
    for (size_t i = 0; i < r->n_branches; i++) {
        const struct strv *own = &r->branches[i].needles, *texts = own->n ? own : &r->needles;
        for (size_t k = 0; k < texts->n; k++)
            finding_index_add_text(
                ix, texts->v[k],
                (struct branch_ref){&r->branches[i], r->first_branch + (unsigned)i});
    }
}

void finding_index_build(struct finding_index *ix)
{
    needles_build(ix->needles);
}

size_t finding_index_words(const struct finding_index *ix)
{
    return needles_words(ix->needles);
}

size_t finding_index_look(const struct finding_index *ix,
                          const char *text,
                          size_t from,
                          size_t len,
                          struct needle_hits *ret)
{
    return needles_look(ix->needles, text, from, len, ret);
}

void finding_index_all(const struct finding_index *ix,
                       const char *text,
                       size_t from,
                       size_t len,
                       uint64_t *found)
{
    needles_all(ix->needles, text, from, len, found);
}

static bool mark_refs(const struct refs *of,
                      const char *text,
                      size_t len,
                      uint64_t *may,
                      bool *blind)
{
    bool any = false;
    for (size_t i = 0; i < of->n; i++) {
        unsigned k = of->v[i].number;
        *blind = *blind && of->v[i].branch->blind;
        if (finding_has_bit(may, k) || !pattern_branch_fits(of->v[i].branch, text, len))
            continue;
        may[k / 64] |= (uint64_t)1 << (k % 64);
        any = true;
    }
    return any;
}

bool finding_index_mark(const struct finding_index *ix,
                        const char *text,
                        size_t len,
                        const uint64_t *found,
                        uint64_t *may,
                        bool *ret_blind)
{
    size_t words = needles_words(ix->needles);
    bool any = false;
    *ret_blind = true;
    for (size_t w = 0; w < words; w++)
        for (uint64_t bits = found[w]; bits; bits &= bits - 1) {
            const struct refs *of = &ix->of[64 * w + (size_t)__builtin_ctzll(bits)];
            any = mark_refs(of, text, len, may, ret_blind) || any;
        }
    return any;
}
