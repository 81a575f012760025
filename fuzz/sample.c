/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c - any bytes as a line of a dump: what is told lies inside it, decodes to no more than
 * its bytes, and a line without its end is no sample. */
#include <assert.h>
#include <math.h>

#include "core/sample/sample.h"
#include "core/sample/sample_mark.h"
#include "fuzz.h"

static void sample_look(struct sample_value v, const uint8_t *data, size_t size, struct buf *text)
{
    const char *begin = (const char *)data;
    assert(!v.n || (v.p >= begin && v.p + v.n <= begin + size));
    buf_reset(text);
    sample_text(v, text);
    assert(!text->failed && text->len <= v.n);
    double share = sample_repeats(buf_str(text), text->len);
    assert(share >= 0 && share <= 1);
    assert(sample_marks(buf_str(text), text->len) <= SAMPLE_HAS_TEMPLATE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sample s;
    if (!sample_read((const char *)data, size, &s))
        return 0;
    struct buf text = BUF_INIT(SAMPLE_LINE_MAX);
    const struct sample_value all[] = {s.input, s.output, s.gts, s.uid, s.request_id};
    for (size_t i = 0; i < array_len(all); i++)
        sample_look(all[i], data, size, &text);
    for (size_t i = 0; i < s.n_parts; i++)
        sample_look(s.parts[i].value, data, size, &text);
    assert(isnan(s.score) || isfinite(s.score));
    assert(sample_group(&s) == sample_group(&s) && s.step >= -1 && s.n_parts <= SAMPLE_PARTS_MAX);
    buf_release(&text);
    size_t cut = size;
    while (cut && data[cut - 1] != '}')
        cut--;
    assert(cut && !sample_read((const char *)data, cut - 1, &s));
    return 0;
}
