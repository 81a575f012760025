/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - reads the clock, disks and GPUs in a machine's answer; see machine.h. It believes
 * nothing: a line of nvidia-smi that is not three fields is a complaint, a number past its range
 * is none. */
#include "ssh/machine.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"
#include "ssh/answer.h"

enum { ECC_MAX = 1 << 30 };
#define KB_MAX ((uint64_t)1 << 50)

static void copy_field(const char *from, const char *to, char *ret, size_t size)
{
    while (from < to && *from == ' ')
        from++;
    text_printf_to(ret, size, "%.*s", (int)(to - from), from);
}

void machine_read_gpu(const char *value, struct machine_gpus *ret)
{
    const char *comma = strchr(value, ','), *second = comma ? strchr(comma + 1, ',') : NULL;
    if (!second || strstr(value, "ERR!")) {
        if (!ret->trouble[0])
            answer_text(value, ret->trouble, sizeof(ret->trouble));
        return;
    }
    if (ret->n == 0) {
        copy_field(value, comma, ret->type, sizeof(ret->type));
        copy_field(comma + 1, second, ret->driver, sizeof(ret->driver));
    }
    const char *ecc = second + 1;
    uint64_t faults = answer_number(&ecc, ECC_MAX, 0); /* "[N/A]" where it has no ECC */
    if (faults && !ret->ecc_errors) {
        ret->ecc_errors = faults;
        ret->ecc_gpu = ret->n;
    }
    ret->n++;
}

double machine_read_clock(const char *value)
{
    char number[40];
    double v = 0;
    answer_text(value, number, sizeof(number));
    number[strspn(number, "0123456789.")] = 0;
    return str_to_real(number, &v, NULL) < 0 || v < 0 || v > 1e11 ? 0 : v;
}

bool machine_read_space(const char *value, uint64_t *ret_size, uint64_t *ret_free)
{
    uint64_t size = answer_number(&value, KB_MAX, 0), available = answer_number(&value, KB_MAX, 0);
    if (size == 0)
        return false;
    *ret_size = size * 1024;
    *ret_free = available * 1024;
    return true;
}
