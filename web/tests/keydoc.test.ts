// SPDX-License-Identifier: Apache-2.0
// Which keys of a schema may stand where the cursor is.
import { describe, expect, it } from "vitest";
import { keysAt, keysOf } from "../src/kit/keydoc";

const keys = keysOf({
    properties: {
        workload: { enum: ["ppo", "grpo"], description: "what runs" },
        nnodes: { type: "integer", default: 1 },
        env: { type: "object" },
        checkpoint: {
            anyOf: [
                {
                    properties: {
                        keep_last: { type: "integer" },
                        on: { properties: { stop: { type: "boolean" } } },
                    },
                },
                { const: "none" },
            ],
        },
    },
});
const names = (above: string[], indent: number) => keysAt(keys, above, indent)?.map((k) => k.key) ?? null;

describe("the keys of a schema", () => {
    it("have their words, docs and defaults", () => {
        expect(keys[0]).toEqual({ key: "workload", says: "what runs", words: ["ppo", "grpo"] });
        expect(keys[1]!.says).toContain("[1]");
        expect(keys[3]!.words).toEqual(["none"]);
        expect(keys[3]!.of![1]!.of![0]!.words).toEqual(["true", "false"]);
    });
    it("are those of the map that the line is in", () => {
        expect(names([], 0)).toEqual(["workload", "nnodes", "env", "checkpoint"]);
        expect(names(["checkpoint:"], 2)).toEqual(["keep_last", "on"]);
        expect(names(["checkpoint:", "  keep_last: 3", "", "# why", "  on:"], 4)).toEqual(["stop"]);
        expect(names(["checkpoint:", "  on:", "    stop: true"], 2)).toEqual(["keep_last", "on"]);
    });
    it("are none where the schema knows nothing", () => {
        expect(names(["env:"], 2)).toBeNull();
        expect(names(["train_file:", "  - a"], 4)).toBeNull();
    });
});
