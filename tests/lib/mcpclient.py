# SPDX-License-Identifier: Apache-2.0
"""The official client of the Model Context Protocol against one server: mcpclient.py URL TOKEN MODE, calls as JSON on
stdin, [[tool, {arguments}], …]. Prints {version, server, tools, answers} as JSON. Run by the environment `mcp`."""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main(url, token, mode, calls):
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        tools = (await client.list_tools()).tools
        answers = []
        for name, arguments in calls:
            r = await client.call_tool(name, arguments)
            answers.append({"error": r.is_error, "text": r.content[0].text, "data": r.structured_content})
        print(json.dumps({"version": client.protocol_version, "tools": [t.name for t in tools], "answers": answers}))


asyncio.run(main(*sys.argv[1:4], json.load(sys.stdin)))
