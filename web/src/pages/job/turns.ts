// SPDX-License-Identifier: Apache-2.0
// turns.ts - an answer as the turns that it is made of: what the model said, which tool it called, and what the tool
// answered, by the marks of the chat templates of Qwen and Hermes (<tool_call>, <tool_response>) and of Llama 3
// (<|python_tag|>). Texts are never lost: all turns together are the answer, without the marks alone.

export interface Turn {
    kind: "said" | "call" | "result";
    text: string;
    /** Of the tool that is called, where the call says so. */
    tool?: string;
}

const MARKS =
    /<tool_call>([\s\S]*?)(?:<\/tool_call>|$)|<tool_response>([\s\S]*?)(?:<\/tool_response>|$)|<\|python_tag\|>([\s\S]*?)(?:<\|eom_id\|>|<\|eot_id\|>|$)/g;

function toolOf(call: string): string | undefined {
    try {
        const v: unknown = JSON.parse(call);
        const name = v && typeof v === "object" ? (v as { name?: unknown }).name : undefined;
        return typeof name === "string" ? name.slice(0, 80) : undefined;
    } catch {
        return undefined; // what a model writes is often no JSON: that is what one looks for
    }
}

export function turnsOf(text: string): Turn[] {
    const all: Turn[] = [];
    const say = (said: string) => {
        if (said.trim()) all.push({ kind: "said", text: said });
    };
    let at = 0;
    for (const m of text.matchAll(MARKS)) {
        say(text.slice(at, m.index));
        at = m.index + m[0].length;
        const call = m[1] ?? m[3];
        if (call !== undefined) all.push({ kind: "call", text: call.trim(), tool: toolOf(call) });
        else all.push({ kind: "result", text: m[2]!.trim() });
    }
    say(text.slice(at));
    return all.length ? all : [{ kind: "said", text }];
}
