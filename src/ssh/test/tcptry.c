/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of tcptry.c: its answer is believed when it is whole, and about what was asked; the
 * script itself finds a port that listens, on this machine, and one that does not. */
#include "ssh/tcptry.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unit.h"

static const struct tcptry_want two_ports = {.ports = {9700, 9900}, .n = 2};

static int tcptry_of(const char *text)
{
    int port = -1;
    return tcptry_read(text, strlen(text), &two_ports, &port) ? port : -1;
}

static void test_answers(void **state)
{
    (void)state;
    assert_int_equal(tcptry_of("END=1\n"), 0);
    assert_int_equal(tcptry_of("OPEN=9900\nEND=1\n"), 9900);
    assert_int_equal(tcptry_of("OPEN=9900\nOPEN=9700\nEND=1\n"), 9700); /* as they were asked */
    assert_int_equal(tcptry_of("OPEN=22\nOPEN=0\nOPEN=-1\nOPEN=99999\nOPEN=\nEND=1\n"), 0);
    assert_int_equal(tcptry_of("OPEN=9900\n"), -1); /* cut off */
    assert_int_equal(tcptry_of(""), -1);
}

struct tcptry_heard {
    const struct tcptry_want *want;
    bool came;
    int port;
};

static void tcptry_on_answer(const struct ssh_result *r, void *arg)
{
    struct tcptry_heard *heard = arg;
    heard->came = r->trouble == SSH_OK && r->status == 0 &&
                  tcptry_read(r->out, r->out_len, heard->want, &heard->port);
}

/* A socket on a port of the loopback that the kernel chose. Bound without listening, it refuses. */
static int tcptry_socket(bool listens, int *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    if (listens)
        assert_int_equal(listen(fd, 1), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static void test_the_script(void **state)
{
    struct tcptry_want want = {.address = "127.0.0.1", .n = 1, .seconds = 10, .ray_bin = ""};
    struct ssh_target here = {.name = "here", .local = true};
    (void)state;
    for (int listens = 0; listens < 2; listens++) {
        struct tcptry_heard heard = {.want = &want, .port = -1};
        uv_loop_t loop;
        int fd = tcptry_socket(listens, &want.ports[0]);
        assert_int_equal(uv_loop_init(&loop), 0);
        assert_non_null(tcptry_begin(&loop, &here, &want, USEC_MIN, tcptry_on_answer, &heard));
        (void)uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
        (void)close(fd);
        assert_true(heard.came);
        assert_int_equal(heard.port, listens ? want.ports[0] : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_the_script),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
