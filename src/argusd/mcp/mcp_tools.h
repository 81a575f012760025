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
     * fence alone, not a second time and bare. No tool declares an outputSchema, with which clients
     * would insist on it. */
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
