/* SPDX-License-Identifier: Apache-2.0 */
/* listen.c - opens listening sockets; see listen.h. Host names are not resolved: the address of
 * a server must not depend on the DNS answers at its start. */
#include "http/listen.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/tcp.h> /* the tcp_info of libc lacks tcpi_bytes_acked */
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* The same address as it must be written, where that can be seen; "" where it cannot. */
static void listen_nearest(const char *host, size_t n, const char *colon, char ret[static 128])
{
    struct in6_addr v6;
    char text[64] = "";
    *ret = 0;
    if (n >= sizeof(text) || !colon || !colon[1])
        return;
    memcpy(text, host, n);
    if (inet_pton(AF_INET6, text, &v6) == 1)
        text_printf_to(ret, 128, "[%s]%s", text, colon);
    else if (!n || !strcmp(text, "*"))
        text_printf_to(ret, 128, "0.0.0.0%s", colon);
    else if (!strcmp(text, "localhost"))
        text_printf_to(ret, 128, "127.0.0.1%s", colon);
}

static int listen_refuse(const char *text, const char *code, const char *near, struct err *err)
{
    return message_refuse(err, ERR_USAGE, code,
                          MESSAGE_ARGS(MESSAGE_STR("listen", text), MESSAGE_STR("near", near)));
}

static int listen_parse(const char *text, union address *ret, struct err *err)
{
    char host[64], near[128];
    int64_t port = 0;
    const char *colon = strrchr(text, ':'), *begin = text;
    size_t n = colon ? (size_t)(colon - text) : 0;
    bool is_v6 = n > 2 && text[0] == '[' && text[n - 1] == ']';
    listen_nearest(text, n, colon, near);
    if (is_v6) {
        begin++;
        n -= 2;
    }
    if (!colon || n >= sizeof(host) || str_to_int(colon + 1, 0, 65535, &port, NULL) < 0)
        return listen_refuse(text, "listen_form", "", err);
    memcpy(host, begin, n);
    host[n] = 0;
    memset(ret, 0, sizeof(*ret));
    if (is_v6) {
        ret->v6.sin6_family = AF_INET6;
        ret->v6.sin6_port = htons((uint16_t)port);
    } else {
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = htons((uint16_t)port);
    }
    void *to = is_v6 ? (void *)&ret->v6.sin6_addr : (void *)&ret->v4.sin_addr;
    return inet_pton(ret->any.sa_family, host, to) == 1
               ? 0
               : listen_refuse(text, "listen_host", near, err);
}

int listen_check(const char *address, struct err *err)
{
    union address a;
    return listen_parse(address, &a, err);
}

static int bind_and_listen(int fd, union address *a)
{
    enum { WAITING_MAX = 1024 };
    int one = 1;
    /* Only hastens a restart: without it the address is free after a minute. */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    socklen_t n = a->any.sa_family == AF_INET6 ? sizeof(a->v6) : sizeof(a->v4);
    if (bind(fd, &a->any, n) < 0 || listen(fd, WAITING_MAX) < 0 || getsockname(fd, &a->any, &n) < 0)
        return -errno;
    return 0;
}

int listen_open(const char *address, int *ret_fd, unsigned *ret_port, struct err *err)
{
    union address a = {0};
    int r = listen_parse(address, &a, err);
    if (r < 0)
        return r;
    int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    r = fd < 0 ? -errno : bind_and_listen(fd, &a);
    if (r < 0) {
        closep(&fd);
        return err_set(err, r, "cannot listen on '%s': %s", address, strerror(-r));
    }
    *ret_port = ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
    *ret_fd = fd;
    return 0;
}

static_assert((int)LISTEN_ADDRESS_MAX == INET6_ADDRSTRLEN, "each address fits");

void listen_address(const struct sockaddr *a, char ret[static LISTEN_ADDRESS_MAX])
{
    const void *from = NULL;
    int family = a ? a->sa_family : AF_UNSPEC;
    *ret = 0;
    if (family == AF_INET)
        from = &((const struct sockaddr_in *)(const void *)a)->sin_addr;
    if (family == AF_INET6) {
        const struct in6_addr *at = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
        bool is_v4 = IN6_IS_ADDR_V4MAPPED(at);
        family = is_v4 ? AF_INET : AF_INET6;
        from = is_v4 ? (const void *)&at->s6_addr[12] : at;
    }
    if (from)
        (void)inet_ntop(family, from, ret, LISTEN_ADDRESS_MAX); /* it fits */
}

uint64_t listen_acked(int fd)
{
    struct tcp_info info = {0};
    socklen_t n = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) < 0)
        return 0;
    return info.tcpi_bytes_acked;
}
