/* SPDX-License-Identifier: Apache-2.0 */
/* listen.h - from "host:port" to a listening socket. */
#pragma once
#include <stdint.h>

#include "base/err.h"

/* Is this an address that listen_open() takes? ERR_USAGE with a code. Nothing is opened. */
must_check int listen_check(const char *address, struct err *err);

/* "127.0.0.1:8080" or "[::1]:8080"; port 0 = any. The descriptor is the caller's to close;
 * *ret_port is the one that it got. ERR_USAGE, or -errno of the failed call. */
must_check int listen_open(const char *address, int *ret_fd, unsigned *ret_port, struct err *err);

/* The IP address of one end of a connection as a text, an IPv4 one also where it came by IPv6; "":
 * it is none. Into ret, LISTEN_ADDRESS_MAX bytes. */
enum { LISTEN_ADDRESS_MAX = 46 };
struct sockaddr;
void listen_address(const struct sockaddr *a, char ret[static LISTEN_ADDRESS_MAX]);

/* Bytes that the other end of a connection has taken so far; 0 when it is gone. */
uint64_t listen_acked(int fd);
