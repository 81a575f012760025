/* SPDX-License-Identifier: Apache-2.0 */
/* behind.c - a server to stand behind a proxy: a thread for each connection, nothing else to slow
 * it.
 *
 *   bench-behind          prints its port, and ends with its standard input
 *
 * …/small answers 64 bytes, …/big?N N bytes, …/sink 64 bytes once it has the whole body, …/events
 * N events 50 ms apart, a WebSocket gets its bytes back. Only for bench/proxy. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

enum { HEAD_MAX = 1 << 14, BLOCK = 256 << 10, EVENT_MS = 50, STACK = 512 << 10 };

static char block[BLOCK];

static int send_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k <= 0)
            return -1;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

static int send_text(int fd, const char *text)
{
    return send_all(fd, text, strlen(text));
}

static int send_big(int fd, unsigned long long n)
{
    char head[128];
    (void)snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %llu\r\n\r\n", n);
    int r = send_text(fd, head);
    while (n && r == 0) {
        size_t k = n < BLOCK ? (size_t)n : BLOCK;
        r = send_all(fd, block, k);
        n -= k;
    }
    return r;
}

static int send_events(int fd, unsigned long long n)
{
    int r = send_text(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                          "Transfer-Encoding: chunked\r\n\r\n");
    for (unsigned long long i = 0; i < n && r == 0; i++) {
        r = send_text(fd, "11\r\ndata: {\"a\":\"bc\"}\n\r\n");
        (void)poll(NULL, 0, EVENT_MS);
    }
    return r ? r : send_text(fd, "0\r\n\r\n");
}

static int echo_socket(int fd)
{
    char data[1 << 16];
    ssize_t n;
    int r = send_text(fd, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                          "Connection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n");
    while (r == 0 && (n = recv(fd, data, sizeof data, 0)) > 0)
        r = send_all(fd, data, (size_t)n);
    return -1;
}

/* The `got` bytes at `head` are the head and the beginning of the body. */
static int take_body(int fd, const char *head, size_t got)
{
    static const char name[] = "\r\nContent-Length: ";
    char data[1 << 16];
    const char *length = strcasestr(head, name), *end = strstr(head, "\r\n\r\n") + 4;
    unsigned long long left =
        length && length < end ? strtoull(length + sizeof name - 1, NULL, 10) : 0;
    size_t came = got - (size_t)(end - head);
    left -= came < left ? came : left;
    while (left) {
        ssize_t n = recv(fd, data, left < sizeof data ? (size_t)left : sizeof data, 0);
        if (n <= 0)
            return -1;
        left -= (size_t)n;
    }
    return send_big(fd, 64);
}

static int serve_one(int fd, const char *head, size_t got)
{
    const char *query = strchr(head, '?'), *end = strstr(head, " HTTP/");
    unsigned long long n = query && query < end ? strtoull(query + 1, NULL, 10) : 1;
    if (strcasestr(head, "\r\nUpgrade: websocket"))
        return echo_socket(fd);
    if (strstr(head, "/big"))
        return send_big(fd, n);
    if (strstr(head, "/events"))
        return send_events(fd, n);
    if (strstr(head, "/sink"))
        return take_body(fd, head, got);
    return send_big(fd, 64);
}

static void *serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char head[HEAD_MAX + 1];
    size_t got = 0;
    for (;;) {
        ssize_t n = recv(fd, head + got, HEAD_MAX - got, 0);
        if (n <= 0)
            break;
        got += (size_t)n;
        head[got] = 0;
        if (!strstr(head, "\r\n\r\n"))
            continue;
        bool ends = strcasestr(head, "\r\nConnection: close");
        if (serve_one(fd, head, got) < 0 || ends)
            break;
        got = 0;
    }
    close(fd);
    return NULL;
}

static _Noreturn void *accept_all(void *arg)
{
    int listener = (int)(intptr_t)arg, on = 1;
    pthread_attr_t small;
    pthread_t thread;
    pthread_attr_init(&small);
    pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&small, STACK);
    for (;;) { /* until the process ends */
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (pthread_create(&thread, &small, serve, (void *)(intptr_t)fd) != 0)
            close(fd);
    }
}

int main(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    pthread_t thread;
    char byte;
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) < 0 || listen(fd, 4096) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) < 0 ||
        pthread_create(&thread, NULL, accept_all, (void *)(intptr_t)fd) != 0)
        bench_die("behind", "cannot listen");
    memset(block, 'x', sizeof block);
    printf("%u\n", ntohs(a.sin_port));
    fflush(stdout);
    while (read(0, &byte, 1) > 0)
        continue;
    return 0;
}
