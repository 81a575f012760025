/* SPDX-License-Identifier: Apache-2.0 */
/* Which lines of the kernel's log are taken down, and whose kills are counted. */
#define _GNU_SOURCE
#include "shepherd/host/kernel.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/unit.h"
#include "shepherd/host/kin.h"

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

/* As /dev/kmsg gives it, one record for each read. */
#define GROUP "/kubepods/pod7/ab12"
#define OOM_KILL(group, pid)                                                                       \
    "6,900,5000000,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,"               \
    "mems_allowed=0,oom_memcg=" GROUP ",task_memcg=" group ",task=python3,pid=" #pid ",uid=0\n"
#define KILLED(pid)                                                                                \
    "3,901,5000100,-;Memory cgroup out of memory: Killed process " #pid                            \
    " (python3) total-vm:221368kB, anon-rss:58112kB, file-rss:6600kB, shmem-rss:0kB, UID:0 "       \
    "pgtables:180kB oom_score_adj:0\n"
static const char RECORDED[] =
    "6,890,1000000,-;usb 1-1: new high-speed USB device\n SUBSYSTEM=usb\n DEVICE=c189:1\n"
    "4,891,2000000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus.\n"
    "4,892,2000001,c;NVRM: Xid (PCI:0000:3b:00): 45, pid=4711, Ch 00000010\n"
    " SUBSYSTEM=Out of memory: Killed process 17 (python3)\n" /* of a record's own, no text */
    OOM_KILL(GROUP, 16) KILLED(16)                            /* in our cgroup */
    OOM_KILL(GROUP "/a", 15) KILLED(15)                       /* below it */
    OOM_KILL("/kubepods/pod7/ab123", 14) KILLED(14)           /* nobody's of ours */
    OOM_KILL("/other", 17) KILLED(17)                         /* by its pid */
    "3,910,6000000,-;Out of memory: Killed process 18 (python3) total-vm:1kB\n" /* older kernels */
    "broken\n;\n,,;Out of memory: Killed process 17\n1,2\n";

static int recorded(const char *text)
{
    int fd = memfd_create("kmsg", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void test_whose_kills_are_counted(void **state)
{
    (void)state;
    char group[] = GROUP, top[] = "/";
    struct kin *kin = kin_new("/a");
    kin_add(kin, 17);
    kin_add(kin, 18);
    const struct {
        struct kernel_concern concern;
        int kills, suspects;
        const char *first;
    } rows[] = {
        {{NULL, NULL}, 0, 0, NULL},          {{NULL, group}, 0, 2, "process 16 "},
        {{kin, NULL}, 2, 0, "process 17 "},  {{kin, top}, 2, 0, "process 17 "},
        {{kin, group}, 2, 2, "process 17 "},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct kernel_log k = KERNEL_LOG_INIT;
        _cleanup_(closep) int fd = recorded(RECORDED);
        k.first = 891;
        kernel_log_read(&k, fd, &rows[i].concern);
        struct kernel_oom oom = kernel_oom(&k, true, -1, false);
        assert_int_equal(k.oom_kills, rows[i].kills);
        assert_int_equal(oom.kills, rows[i].kills + rows[i].suspects);
        assert_false(oom.is_unsure);
        assert_true(!oom.line == !rows[i].first);
        if (oom.line && rows[i].first)
            assert_non_null(strstr(oom.line, rows[i].first));
        assert_int_equal(k.n_xids, 1);
        assert_int_equal(k.xids[0].number, 79);
        assert_string_equal(k.xids[0].line, "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, "
                                            "GPU has fallen off the bus.");
        assert_null(strstr(buf_str(&k.text), "usb") || strstr(buf_str(&k.text), "SUBSYSTEM"));
        assert_non_null(strstr(buf_str(&k.text), "[5.000100] Memory cgroup out of memory"));
        kernel_log_release(&k);
    }
    kin_free(kin);
}

#define SOMEBODY 40404 /* is never met */

static void read_text(struct kernel_log *k, const char *text, const struct kernel_concern *concern)
{
    _cleanup_(closep) int fd = recorded(text);
    kernel_log_read(k, fd, concern);
}

static void test_a_suspect_is_asked_after_again(void **state)
{
    (void)state;
    char group[] = GROUP, first[512], second[512];
    (void)snprintf(first, sizeof(first), OOM_KILL(GROUP, % d), (int)getpid()); /* these fit */
    (void)snprintf(second, sizeof(second), KILLED(% d), (int)getpid());
    struct kin *kin = kin_new("/a");
    const struct kernel_concern concern = {kin, group};
    struct kernel_log k = KERNEL_LOG_INIT;
    read_text(&k, first, &concern); /* a pair that comes in two */
    read_text(&k, second, &concern);
    read_text(&k, OOM_KILL(GROUP, 40404) KILLED(40404), &concern);
    assert_int_equal(k.oom_kills, 0);
    assert_int_equal(k.n_suspects, 2);
    do
        kin_look(kin); /* we are of nobody */
    while (kin_ask(kin, getpid()) == KIN_UNKNOWN);
    read_text(&k, first, &concern);
    read_text(&k, second, &concern);
    assert_int_equal(k.oom_kills, 0);
    assert_int_equal(k.n_suspects, 1);
    kin_add(kin, SOMEBODY); /* it is reaped by its shepherd */
    read_text(&k, "", &concern);
    assert_int_equal(k.n_suspects, 0);
    assert_int_equal(k.oom_kills, 1);
    assert_non_null(strstr(k.oom_line, "process 40404 "));
    assert_int_equal(k.oom_in_group, 3);
    kernel_log_release(&k);
    kin_free(kin);
}

static void test_a_pid_comes_to_mean_another(void **state)
{
    (void)state;
    char group[] = GROUP;
    struct kin *kin = kin_new("/a");
    const struct kernel_concern concern = {kin, group};
    struct kernel_log k = KERNEL_LOG_INIT;
    for (int i = 0; i < 2 * KERNEL_SUSPECTS; i++)
        read_text(&k, OOM_KILL(GROUP, 40404) KILLED(40404), &concern);
    assert_int_equal(k.n_suspects, 2 * KERNEL_SUSPECTS);
    for (int i = 0; i < 100; i++)
        read_text(&k, "", &concern);
    kin_add(kin, SOMEBODY);
    read_text(&k, "", &concern);
    assert_int_equal(k.oom_kills, 0); /* too late to be believed */
    kernel_log_release(&k);
    kin_free(kin);
}

static void test_what_is_certain(void **state)
{
    (void)state;
    static const struct {
        int ours, suspects, in_log;
        bool can_read;
        int64_t in_group;
        bool has_neighbours;
        int kills;
        bool is_unsure;
    } rows[] = {
        {0, 0, 0, false, -1, true, -1, false}, /* nothing is known */
        {0, 0, 0, true, -1, true, 0, false},
        {2, 0, 2, true, 2, true, 2, false},  /* by pid */
        {2, 1, 3, true, 3, true, 2, false},  /* what is certain is enough */
        {2, 1, 3, true, 3, false, 3, false}, /* who else could it be */
        {0, 1, 1, true, 1, true, 1, true},
        {0, 1, 1, true, -1, true, 1, true},
        {0, 0, 2, true, 2, true, 0, false}, /* all of another job's, and known */
        {0, 0, 2, true, 3, true, 1, true},  /* the log has lost one */
        {0, 0, 2, true, 3, false, 1, false},
        {0, 0, 0, false, 2, true, 2, true}, /* the cgroup alone */
        {0, 0, 0, false, 2, false, 2, false},
        {1, 0, 0, true, 0, false, 1, false}, /* in another group */
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct kernel_log k = KERNEL_LOG_INIT;
        k.oom_kills = rows[i].ours;
        k.n_suspects = rows[i].suspects;
        k.oom_in_group = rows[i].in_log;
        struct kernel_oom oom =
            kernel_oom(&k, rows[i].can_read, rows[i].in_group, rows[i].has_neighbours);
        if (oom.kills != rows[i].kills || oom.is_unsure != rows[i].is_unsure)
            print_error("row %zu: %d %d\n", i, oom.kills, oom.is_unsure);
        assert_int_equal(oom.kills, rows[i].kills);
        assert_int_equal(oom.is_unsure, rows[i].is_unsure);
    }
}

static void test_what_is_older_is_left_out(void **state)
{
    (void)state;
    _cleanup_(closep) int fd = recorded(RECORDED);
    for (int life = 0; life < 2; life++) {
        struct kernel_log k = KERNEL_LOG_INIT;
        k.first = 910;
        kernel_log_again(fd);
        kernel_log_read(&k, fd, NULL);
        assert_int_equal(k.n_xids, 0);
        assert_null(strstr(buf_str(&k.text), "NVRM"));
        assert_non_null(strstr(buf_str(&k.text), "process 18 "));
        kernel_log_release(&k);
    }
}

/* A file gives pieces that end anywhere, and what is no record at all is passed over. */
static void test_much_and_strange(void **state)
{
    (void)state;
    struct kernel_log k = KERNEL_LOG_INIT;
    struct buf text = BUF_INIT(2 << 20);
    for (int i = 0; i < 9000; i++)
        assert_int_equal(buf_addf(&text, "6,1,%d,-;NVRM: line %d of many\n", i, i), 0);
    for (int i = 0; i < 30000; i++)
        assert_int_equal(buf_addc(&text, 'x'), 0);
    assert_int_equal(buf_adds(&text, "\n4,2,3,-;NVRM: Xid (PCI:0000:3b:00): 31, the last\n"), 0);
    _cleanup_(closep) int fd = recorded(buf_str(&text));
    kernel_log_read(&k, fd, NULL);
    assert_int_equal(k.n_xids, 1);
    assert_int_equal(k.xids[0].number, 31);
    assert_non_null(strstr(buf_str(&k.text), "line 4321 of many\n"));
    assert_true(k.text.len <= KERNEL_TEXT_MAX);
    kernel_log_release(&k);
    buf_release(&text);
}

static void test_where_a_gpu_is(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t at;
    } rows[] = {
        {"PCI:0000:3b:00): 79, pid=1", 0x3b00},
        {"00000000:3B:00.0", 0x3b00},
        {"0000:3b:00): 13", 0x3b00}, /* of older drivers */
        {"PCI:0001:c1:1f", 0x1c11f},
        {"PCI:10000:01:00", 0x100000100},
        {"PCI:0000:100:00", 0},
        {"PCI:0000:3b:20", 0},
        {"PCI:0000:3b", 0},
        {"PCI:0000:-1:00", 0},
        {"PCI:0000: 3b:00", 0},
        {"PCI:fffffffffffffffffffff:3b:00", 0},
        {"PCI:", 0},
        {"GPU-1234", 0},
        {"", 0},
    };
    for (size_t i = 0; i < array_len(rows); i++)
        assert_int_equal(kernel_gpu_at(rows[i].text), rows[i].at);
}

#define XID(where, number) "4,5,6,-;NVRM: Xid (" where "): " #number ", pid=4711, name=dcgm\n"

static int xid_among(const struct kernel_log *k, const char *const *gpus, int n)
{
    uint64_t at[4] = {0};
    for (int i = 0; i < n; i++)
        at[i] = kernel_gpu_at(gpus[i]);
    const struct kernel_xid *xid = kernel_xid_among(k, at, n);
    if (xid)
        assert_non_null(strstr(xid->line, "NVRM: Xid ("));
    return xid ? xid->number : 0;
}

static void test_whose_xid_it_is(void **state)
{
    (void)state;
    static const char *const other[] = {"00000000:3B:00.0"}, *const ours[] = {"00000000:C1:00.0"},
                             *const both[] = {"00000000:C1:00.0", "00000000:3B:00.0"},
                             *const sound[] = {"00000000:DB:00.0"};
    struct kernel_log k = KERNEL_LOG_INIT;
    assert_int_equal(xid_among(&k, NULL, -1), 0);
    read_text(&k, XID("PCI:0000:3b:00", 79) XID("PCI:0000:3b:00", 45), NULL);
    read_text(&k, XID("PCI:0000:c1:00", 31) XID("PCI:0000:c1:00", 43), NULL);
    assert_int_equal(xid_among(&k, other, 1), 79);
    assert_int_equal(xid_among(&k, ours, 1), 31); /* the first of its own, though a later one */
    assert_int_equal(xid_among(&k, both, 2), 79);
    assert_int_equal(xid_among(&k, sound, 1), 0);
    assert_int_equal(xid_among(&k, NULL, 0), 0); /* it has none */
    assert_int_equal(xid_among(&k, NULL, -1), 79);
    assert_non_null(strstr(buf_str(&k.text), "c1:00): 43")); /* all are there to be read */
    read_text(&k, XID("somewhere", 62), NULL);
    assert_int_equal(xid_among(&k, sound, 1), 62); /* nobody can say that it is another's */
    assert_int_equal(xid_among(&k, ours, 1), 31);
    kernel_log_release(&k);
}

static void test_more_xids_than_gpus(void **state)
{
    (void)state;
    struct kernel_log k = KERNEL_LOG_INIT;
    for (int i = 0; i < 2 * KERNEL_XIDS; i++) {
        char line[128];
        (void)snprintf(line, sizeof(line), "4,5,6,-;NVRM: Xid (PCI:%04x:3b:00): %d, x\n", i, i + 1);
        read_text(&k, line, NULL);
    }
    assert_int_equal(k.n_xids, KERNEL_XIDS);
    assert_int_equal(k.xids[KERNEL_XIDS - 1].number, KERNEL_XIDS);
    kernel_log_release(&k);
}

static void test_reading_never_fails(void **state)
{
    (void)state;
    struct kernel_log none = KERNEL_LOG_INIT;
    struct kernel_concern concern;
    struct kin *kin = kin_new("/a");
    kernel_concern_init(&concern, kin);
    for (int all = 0; all < 2; all++) {
        struct kernel_log k = KERNEL_LOG_INIT;
        _cleanup_(closep) int fd = kernel_log_open(all ? &k.first : NULL);
        kernel_log_read(&k, fd, &concern); /* whatever this machine lets us see */
        assert_true(k.text.len <= KERNEL_TEXT_MAX && k.oom_kills >= 0);
        kernel_log_release(&k);
    }
    kernel_log_read(&none, -1, &concern);
    assert_int_equal(none.text.len, 0);
    kernel_log_release(&none);
    kernel_concern_release(&concern);
    kin_free(kin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_whose_kills_are_counted),
        cmocka_unit_test(test_a_suspect_is_asked_after_again),
        cmocka_unit_test(test_a_pid_comes_to_mean_another),
        cmocka_unit_test(test_what_is_certain),
        cmocka_unit_test(test_what_is_older_is_left_out),
        cmocka_unit_test(test_much_and_strange),
        cmocka_unit_test(test_where_a_gpu_is),
        cmocka_unit_test(test_whose_xid_it_is),
        cmocka_unit_test(test_more_xids_than_gpus),
        cmocka_unit_test(test_reading_never_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
