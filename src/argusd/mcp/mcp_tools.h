/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tools.h - the tools: each a name for a route of the API, with that route's arguments. */
#pragma once
#include "base/buf.h"
#include "base/json.h"
#include "http/http.h"

enum { MCP_TARGET_MAX = 4096, MCP_BODY_MAX = 256 << 10, MCP_TOOLS_MAX = 512 << 10 };

enum mcp_tool_flags {
    MCP_TOOL_READS = 1 << 0,    /* changes nothing */
    MCP_TOOL_DESTROYS = 1 << 1, /* what it does is not taken back */
    /* What it finds is in words of admins and of Argus: the answer has structuredContent, too. Of
     * any other tool it may have words of a job or of who submitted it: they leave inside of the
     * fence alone, not a second time and bare; so does the sentence of a refusal, with every tool.
     * No tool declares an outputSchema, with which clients would insist on it. */
    MCP_TOOL_IS_OWN = 1 << 2,
};
struct mcp_tool {
    const char *name, *method, *pattern;
    unsigned flags;
};
const struct mcp_tool *mcp_tool_find(const char *name); /* NULL: none */

/* "tools":[…] of those that a token of this role may call. */
void mcp_tools_put(enum http_role role, struct jout *j);
/* The target and body of a call. ERR_BAD_REQUEST: an argument that is not the tool's, or one of the
 * path that is missing. */
must_check int mcp_tool_ask(const struct mcp_tool *t,
                            const json_t *arguments,
                            struct buf *ret_target,
                            struct buf *ret_body,
                            struct err *err);

/* ---- whether each route is one ---- */

/* Why a route is no tool. */
enum mcp_left_why {
    MCP_LEFT_PEOPLE, /* who comes in, with which keys and shares: a person decides that */
    MCP_LEFT_ACTS,   /* it changes something, and no plan shows first what */
    MCP_LEFT_BYTES,  /* files, and answers that are no JSON */
    MCP_LEFT_PAGES,  /* what pages draw: another tool tells as much of it as a program needs */
    MCP_LEFT_ARGUSD  /* argusd itself: its formats, health and state */
};
struct mcp_left {
    const char *method, *pattern;
    enum mcp_left_why why;
};
const struct mcp_left *mcp_left(size_t *ret_n);
/* Is it decided about this route, and as it should be: it is a tool or left, not both; a tool that
 * reads is a GET of a role, and one that changes something a POST for users. NULL, or what is
 * wrong. A hidden route is for no program. */
const char *mcp_route_check(const struct http_route *r);
/* A tool or a left row that is no route any more, as "GET /v1/x"; heap, NULL: each is one. */
char *mcp_rows_check(void);
