/* SPDX-License-Identifier: Apache-2.0 */
/* Which lines of the kernel's log are taken down. */
#include "shepherd/kernel.h"

#include "base/unit.h"

static void test_lines(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool matters;
        int xid;
    } rows[] = {
        {"NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off",
         true, 79},
        {"NVRM: Xid (PCI:0000:c1:00): 31, pid=4711, name=python", true, 31},
        {"NVRM: GPU at PCI:0000:3b:00: GPU-1234", true, 0},
        {"Out of memory: Killed process 123 (python) total-vm:1kB", true, 0},
        {"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null)", true, 0},
        {"blk_update_request: I/O error, dev sda, sector 1", true, 0},
        {"usb 1-1: new high-speed USB device", false, 0},
        {"Xid", false, 0},
        {"", false, 0},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        int xid = -1;
        assert_int_equal(kernel_line_matters(rows[i].line, &xid), rows[i].matters);
        assert_int_equal(xid, rows[i].xid);
    }
}

static void test_reading_never_fails(void **state)
{
    (void)state;
    struct kernel_log k;
    kernel_log_read(&k, 0); /* whatever this machine lets us see */
    assert_true(k.text.len <= KERNEL_TEXT_MAX);
    kernel_log_release(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_reading_never_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
