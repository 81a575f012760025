/* SPDX-License-Identifier: Apache-2.0 */
/* torchzip.c - any bytes as a file of torch.save: every member that is told lies in the file. */
#include <assert.h>
#include <string.h>

#include "core/check/torchzip.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct torchzip_end end;
    struct torchzip_member m;
    size_t n = size < TORCHZIP_TAIL_MAX ? size : TORCHZIP_TAIL_MAX, pos = 0;
    if (torchzip_find_end(data + size - n, n, size, &end, NULL) < 0)
        return 0;
    assert(end.dir_at <= size && end.dir_bytes <= size - end.dir_at);
    while (torchzip_next(data + end.dir_at, &end, &pos, &m, NULL) == 1) {
        uint64_t at;
        assert(m.at <= size && m.bytes <= size - m.at && pos <= end.dir_bytes);
        if (size - m.at < TORCHZIP_LOCAL_BYTES)
            continue;
        if (torchzip_data_at(data + m.at, &m, &end, &at, NULL) == 0)
            assert(at <= end.dir_at && m.bytes <= end.dir_at - at);
    }
    return 0;
}
