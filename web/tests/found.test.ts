// SPDX-License-Identifier: Apache-2.0
// found.test.ts - what the find box makes of an answer of the search: addresses, groups, what still fits.
import { expect, test } from "vitest";
import type { SearchHit } from "../src/made/api";
import { byKind, narrowed, pathOf } from "../src/shell/found";

const hit = (kind: SearchHit["kind"], id: string, name = id): SearchHit => ({ kind, id, name, about: null });

test("each kind leads to its page", () => {
    expect(pathOf(hit("job", "grpo-7", "a run"))).toBe("/jobs/grpo-7");
    expect(pathOf(hit("node", "gpu-03"))).toBe("/nodes?node=gpu-03");
    expect(pathOf(hit("user", "alice"))).toBe("/jobs?user=alice");
    expect(pathOf(hit("project", "rl"))).toBe("/people?project=rl");
    expect(pathOf(hit("dataset", "alice:gsm8k@2", "gsm8k@2"))).toBe("/data/alice%3Agsm8k%402");
    expect(pathOf(hit("model", "common:qwen@1", "qwen@1"))).toBe("/models/common%3Aqwen%401");
    expect(pathOf(hit("service", "sums"))).toBe("/services/sums");
    expect(pathOf(hit("pipeline", "alice/daily", "daily"))).toBe("/pipelines/daily?user=alice");
    expect(pathOf(hit("notebook", "alice/main", "main"))).toBe("/notebooks?name=alice%2Fmain");
});

test("what is everybody's has no owner before its name", () => {
    expect(pathOf(hit("snapshot", "alice/verl@1", "verl@1"))).toBe("/snapshots?name=alice%3Averl%401");
    expect(pathOf(hit("snapshot", "verl@1"))).toBe("/snapshots?name=%3Averl%401");
    expect(pathOf(hit("preset", "rl/base", "base"))).toBe("/presets?name=rl%3Abase");
    expect(pathOf(hit("preset", "sft-7b"))).toBe("/presets?name=%3Asft-7b");
});

test("kinds stand side by side, that of the best one first", () => {
    const hits = [hit("model", "a"), hit("job", "b"), hit("model", "c"), hit("job", "d")];
    expect(byKind(hits).map((h) => h.id)).toEqual(["a", "c", "b", "d"]);
    expect(byKind([])).toEqual([]);
});

test("an older answer shows what fits the newer text, and nothing without a text", () => {
    const hits = [hit("job", "j1", "GSM8K sft"), hit("model", "alice:gsm@1", "gsm@1"), hit("node", "gs")];
    expect(narrowed(hits, " gsm ").map((h) => h.id)).toEqual(["j1", "alice:gsm@1"]);
    expect(narrowed(hits, "ALICE").map((h) => h.id)).toEqual(["alice:gsm@1"]);
    expect(narrowed(hits, " ")).toEqual([]);
});
