/* SPDX-License-Identifier: Apache-2.0 */
/* finding.c - any bytes as a log, cut anywhere: one finding, with quotes that lie inside, the same
 * whatever the cuts, and the same again after JSON. */
#include <assert.h>
#include <string.h>

#include "core/finding/finding.h"
#include "core/finding/rules/finding_rules.h"
#include "fuzz.h"

enum { JSON_MAX = 1 << 20 };

static void judge(const struct finding_rules *rules,
                  const uint8_t *data,
                  size_t size,
                  size_t step,
                  struct finding *ret)
{
    struct finder *f = finder_new(rules);
    finder_source(f, "a.log");
    for (size_t i = 0; i < size; i += step)
        finder_feed(f, data + i, size - i < step ? size - i : step);
    finder_end(f, NULL, ret);
    finder_free(f);
}

static void to_json(const struct finding *f, struct buf *out)
{
    struct jout j = jout_begin(out);
    finding_to_json(f, &j, NULL);
    assert(!out->failed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct finding_rules *rules;
    struct finding whole, cut, again;
    struct buf a = BUF_INIT(JSON_MAX), b = BUF_INIT(JSON_MAX), c = BUF_INIT(JSON_MAX);
    json_t *v;
    if (!rules && finding_rules_built_in(&rules, NULL) < 0)
        return 0;
    judge(rules, data, size, size + 1, &whole);
    judge(rules, data, size, 1 + size % 97, &cut);
    to_json(&whole, &a);
    to_json(&cut, &b);
    assert(!strcmp(buf_str(&a), buf_str(&b)));
    for (size_t i = 0; i < whole.n_evidence; i++)
        assert(whole.evidence[i].offset <= size && whole.evidence[i].text);
    assert(json_parse(buf_str(&a), a.len, JSON_MAX, &v, NULL) == 0);
    assert(finding_from_json(v, &again, NULL) == 0);
    to_json(&again, &c);
    assert(!strcmp(buf_str(&a), buf_str(&c)));
    json_decref(v);
    finding_release(&whole);
    finding_release(&cut);
    finding_release(&again);
    buf_release(&a);
    buf_release(&b);
    buf_release(&c);
    return 0;
}
