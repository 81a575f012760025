/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - keep-alive HTTP load from one thread, in a closed loop: every client sends its
 * next request when it has the answer to the last.
 *
 *   bench-load [-c CLIENTS] [-s SECONDS | -n REQUESTS] [-m METHOD] [-H 'K: V']... [-b FILE]
 *              WHAT HOST:PORT PATH
 *
 * '@@@@@@@@@@' in path or body becomes a number that no other request has. Prints one
 * line of JSON (bench_print) about the answers with status 2xx; the first other answer is shown
 * on stderr, and any makes the exit status 1. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

enum { REQUEST_MAX = 1 << 16, HEAD_MAX = 1 << 14, DIGITS = 10, EVENTS = 256, MARKS_MAX = 8 };

struct client {
    int fd;
    bool live;
    char *request;           /* this client's copy, with its own number in it */
    char head[HEAD_MAX + 1]; /* of the answer; the body is only counted */
    size_t got;
    long long left; /* of the body; -1 while the head is read */
    uint64_t since;
};

struct load {
    const char *what, *host, *path, *method, *body;
    char headers[4096];
    char request[REQUEST_MAX];
    size_t length, marks[MARKS_MAX], nmarks;
    unsigned nclients;
    uint64_t end;
    size_t max, started, done, bad;
    unsigned long long number;
    int epoll;
    struct addrinfo *address;
    struct samples samples;
};

static void read_file(struct load *l, const char *path)
{
    static char text[REQUEST_MAX / 2];
    FILE *f = fopen(path, "r");
    size_t n;

    if (!f)
        bench_die(path, "cannot read");
    n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    (void)fclose(f);
    l->body = text;
}

static void make_request(struct load *l)
{
    int n = snprintf(l->request, sizeof l->request,
                     "%s %s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %zu\r\n\r\n%s", l->method,
                     l->path, l->host, l->headers, strlen(l->body), l->body);

    if (n < 0 || (size_t)n >= sizeof l->request)
        bench_die("request", "too long");
    l->length = (size_t)n;
    for (const char *p = l->request; (p = strstr(p, "@@@@@@@@@@")) != NULL; p += DIGITS) {
        if (l->nmarks == MARKS_MAX)
            bench_die("request", "too many numbers in it");
        l->marks[l->nmarks++] = (size_t)(p - l->request);
    }
}

static void watch(const struct load *l, struct client *c)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};

    if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &e) < 0)
        bench_die("epoll", strerror(errno));
}

/* The sockets block: a request is small and the server reads. */
static void transmit(const struct load *l, struct client *c)
{
    size_t sent = 0;

    while (sent < l->length) {
        ssize_t n = send(c->fd, c->request + sent, l->length - sent, MSG_NOSIGNAL);

        if (n < 0)
            bench_die("send", strerror(errno));
        sent += (size_t)n;
    }
}

static void begin(struct load *l, struct client *c)
{
    char digits[DIGITS + 1];

    c->live = l->max ? l->started < l->max : bench_now() < l->end;
    if (!c->live)
        return;
    l->started++;
    (void)snprintf(digits, sizeof digits, "%010llu", l->number++);
    for (size_t i = 0; i < l->nmarks; i++)
        memcpy(c->request + l->marks[i], digits, DIGITS);
    c->got = 0;
    c->left = -1;
    c->since = bench_now();
    transmit(l, c);
}

static void finish(struct load *l, struct client *c)
{
    int status = atoi(c->head + strlen("HTTP/1.1 "));

    if (status >= 200 && status < 300) {
        l->done++;
        samples_add(&l->samples, bench_now() - c->since);
    } else if (!l->bad++) {
        (void)fprintf(stderr, "%s: first bad answer: %s\n", l->what, c->head);
    }
    begin(l, c);
}

/* The head is whole: how long is the body? */
static void read_head(struct client *c, const char *end)
{
    const char *length;

    if (strcasestr(c->head, "\r\nTransfer-Encoding:") ||
        strcasestr(c->head, "\r\nConnection: close"))
        bench_die("answer", "is chunked or ends the connection");
    length = strcasestr(c->head, "\r\nContent-Length:");
    c->left = length ? atoll(length + strlen("\r\nContent-Length:")) : 0;
    c->left -= (long long)(c->got - (size_t)(end - c->head));
}

static void take(struct client *c, const char *bytes, size_t n)
{
    size_t keep = n < HEAD_MAX - c->got ? n : HEAD_MAX - c->got;
    const char *end;

    if (c->left >= 0) {
        c->left -= (long long)n;
        return;
    }
    memcpy(c->head + c->got, bytes, keep);
    c->head[c->got + keep] = '\0';
    c->got += n;
    end = strstr(c->head, "\r\n\r\n");
    if (end)
        read_head(c, end + 4);
    else if (c->got >= HEAD_MAX)
        bench_die("answer", "has a head without an end");
}

static void receive(struct load *l, struct client *c)
{
    static char bytes[1 << 18];
    ssize_t n;

    while (c->live && (n = recv(c->fd, bytes, sizeof bytes, 0)) != 0) {
        if (n < 0)
            bench_die("recv", strerror(errno));
        take(c, bytes, (size_t)n);
        if (c->left == 0)
            finish(l, c);
        if ((size_t)n < sizeof bytes)
            return;
    }
    if (c->live)
        bench_die("recv", "the server closed the connection");
}

static void connect_client(struct load *l, struct client *c)
{
    int on = 1;

    c->fd = socket(l->address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, l->address->ai_addr, l->address->ai_addrlen) < 0)
        bench_die(l->host, strerror(errno));
    if (setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
        bench_die("TCP_NODELAY", strerror(errno));
    c->request = malloc(l->length + 1);
    if (!c->request)
        bench_die("request", "out of memory");
    memcpy(c->request, l->request, l->length + 1);
    watch(l, c);
}

static void resolve(struct load *l)
{
    struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    char *host = strdup(l->host), *colon = strrchr(host, ':');

    if (!colon)
        bench_die(l->host, "is not HOST:PORT");
    *colon = '\0';
    if (getaddrinfo(host, colon + 1, &want, &l->address) != 0)
        bench_die(l->host, "is not an address");
    free(host);
}

static void run(struct load *l, struct client *clients, double seconds)
{
    struct epoll_event events[EVENTS];
    uint64_t start = bench_now();
    int n;

    l->end = start + (uint64_t)(seconds * 1e9);
    for (unsigned i = 0; i < l->nclients; i++)
        begin(l, &clients[i]);
    while (l->done + l->bad < l->started) {
        n = epoll_wait(l->epoll, events, EVENTS, -1);
        if (n < 0)
            bench_die("epoll_wait", strerror(errno));
        for (int i = 0; i < n; i++) {
            receive(l, events[i].data.ptr);
        }
    }
    bench_print(l->what, l->nclients, l->done, bench_now() - start, &l->samples);
}

static void add_header(struct load *l, const char *line)
{
    size_t n = strlen(l->headers);

    (void)snprintf(l->headers + n, sizeof l->headers - n, "%s\r\n", line);
}

int main(int argc, char **argv)
{
    static struct load l = {.method = "GET", .body = "", .nclients = 1};
    struct client *clients;
    double seconds = 3;
    int o;

    while ((o = getopt(argc, argv, "c:s:n:m:H:b:")) > 0)
        switch (o) {
        case 'c':
            l.nclients = (unsigned)atoi(optarg);
            break;
        case 's':
            seconds = atof(optarg);
            break;
        case 'n':
            l.max = (size_t)atoll(optarg);
            break;
        case 'm':
            l.method = optarg;
            break;
        case 'H':
            add_header(&l, optarg);
            break;
        case 'b':
            read_file(&l, optarg);
            break;
        default:
            return 2;
        }
    if (argc - optind != 3)
        bench_die("bench-load", "usage: bench-load [options] WHAT HOST:PORT PATH");
    l.what = argv[optind];
    l.host = argv[optind + 1];
    l.path = argv[optind + 2];
    /* Numbers of two runs on one server never meet. */
    l.number = (unsigned long long)(bench_now() / 10000) % 10000000000u;
    make_request(&l);
    resolve(&l);
    l.epoll = epoll_create1(EPOLL_CLOEXEC);
    clients = calloc(l.nclients, sizeof *clients);
    if (l.epoll < 0 || !clients)
        bench_die("bench-load", "cannot start");
    for (unsigned i = 0; i < l.nclients; i++)
        connect_client(&l, &clients[i]);
    run(&l, clients, seconds);
    return l.bad > 0;
}
