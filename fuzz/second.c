/* SPDX-License-Identifier: Apache-2.0 */
/* second.c - any bytes as a model's answer, and as a finding that it is shown: an opinion has a
 * cause within its ceiling and neither link nor patch, and what is shown has a ceiling. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/finding/opinion/second.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(freep) char *text = xstrndup((const char *)data, size);
    struct second_answer answer = {0};
    struct err err = {0};
    struct buf out = BUF_INIT(SECOND_EVIDENCE_MAX);
    if (second_answer_read((const char *)data, size, &answer, &err) == 0) {
        assert(answer.said.cause && strlen(answer.said.cause) <= 2000);
        assert(!answer.said.link && !answer.said.patch && answer.tokens >= 0);
        field_release(&opinion_table, &answer.said);
    } else {
        assert(err.text[0]);
    }
    (void)!second_evidence(text, &out);
    buf_release(&out);
    return 0;
}
