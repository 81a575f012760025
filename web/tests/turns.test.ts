// SPDX-License-Identifier: Apache-2.0
// turns.test.ts - an answer as its turns.
import { expect, test } from "vitest";
import { turnsOf } from "../src/pages/job/turns";

test("an answer without tools is one turn, whatever is in it", () => {
    for (const text of ["", " ", "4 < 5 and <b>bold</b>", "</tool_call> alone"])
        expect(turnsOf(text)).toEqual([{ kind: "said", text }]);
});

test("calls have the name of their tool, results are told apart", () => {
    const text =
        'Let me look.\n<tool_call>\n{"name": "search", "arguments": {"q": "7*6"}}\n</tool_call>\nuser\n' +
        "<tool_response>\n42\n</tool_response>\nassistant\nIt is 42.";
    expect(turnsOf(text)).toEqual([
        { kind: "said", text: "Let me look.\n" },
        { kind: "call", text: '{"name": "search", "arguments": {"q": "7*6"}}', tool: "search" },
        { kind: "said", text: "\nuser\n" },
        { kind: "result", text: "42" },
        { kind: "said", text: "\nassistant\nIt is 42." },
    ]);
});

test("a call that is cut, or no JSON, is a call all the same", () => {
    expect(turnsOf('<tool_call>{"name": "sea')).toEqual([{ kind: "call", text: '{"name": "sea', tool: undefined }]);
    expect(turnsOf("<|python_tag|>print(1)<|eom_id|>1")).toEqual([
        { kind: "call", text: "print(1)", tool: undefined },
        { kind: "said", text: "1" },
    ]);
    expect(turnsOf('<tool_call>{"name": 7}</tool_call>')[0]!.tool).toBeUndefined();
});

test("a long answer of marks alone takes no time that grows with its square", () => {
    const text = "<tool_call>".repeat(20_000);
    expect(turnsOf(text).length).toBe(1);
    expect(turnsOf("<tool_response>x</tool_response>".repeat(5_000)).length).toBe(5_000);
});
