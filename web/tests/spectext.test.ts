// SPDX-License-Identifier: Apache-2.0
// A spec's text, changed by a form: one key moves, and all else stays as a person wrote it.
import { describe, expect, it } from "vitest";
import { packed, unpacked } from "../src/base/anchor";
import {
    lineOf,
    listOf,
    overrideOf,
    scalar,
    setAny,
    setOverride,
    setValue,
    toYaml,
    valueOf,
} from "../src/base/spectext";

const TEXT = `# our run
workload: grpo  # not ppo
name: "a: b"
train_file: [one.parquet, 'two, three']
restart:
  max: 3
overrides:
  - data.train_batch_size=8
  # the rate
  - actor.optim.lr=1e-6
timeout: 12h
`;

describe("a spec's text", () => {
    it("is read key by key", () => {
        expect(valueOf(TEXT, "workload")).toBe("grpo");
        expect(valueOf(TEXT, "name")).toBe("a: b");
        expect(listOf(TEXT, "train_file")).toEqual(["one.parquet", "two, three"]);
        expect(valueOf(TEXT, "restart")).toBeNull();
        expect(valueOf(TEXT, "nnodes")).toBeNull();
        expect(overrideOf(TEXT, "data.train_batch_size")).toBe("8");
        expect(lineOf(TEXT, "timeout")).toBe(11);
    });
    it("changes in one place, comments and order stay", () => {
        const changed = setValue(TEXT, "workload", "ppo");
        expect(changed).toBe(TEXT.replace("grpo  #", "ppo  #"));
        expect(setValue(TEXT, "timeout", "")).toBe(TEXT.replace("timeout: 12h\n", ""));
        expect(setValue(TEXT, "workload", "grpo")).toBe(TEXT);
        expect(setValue(TEXT, "nnodes", "2", false)).toContain("nnodes: 2\noverrides:");
        expect(setValue("workload: ray\n", "name", "1e3")).toBe('workload: ray\nname: "1e3"\n');
        expect(setValue("workload: ray\n", "pool", ["a", "b,c"])).toContain('pool: [a, "b,c"]');
    });
    it("has overrides of its own", () => {
        const faster = setOverride(TEXT, "actor.optim.lr", "2e-6");
        expect(faster).toBe(TEXT.replace("1e-6", "2e-6"));
        expect(setOverride(TEXT, "actor.optim.lr", "")).toContain("  # the rate\ntimeout");
        expect(setOverride("workload: sft\n", "optim.lr", "1e-5")).toBe(
            "workload: sft\noverrides:\n  - optim.lr=1e-5\n",
        );
        expect(setOverride("overrides: [a.b=1]\n", "+a.b", "2")).toBe("overrides:\n  - a.b=2\n");
        expect(setAny(TEXT, "overrides.data.train_batch_size", "4")).toContain("- data.train_batch_size=4");
        expect(setAny(TEXT, "timeout", "6h")).toContain("timeout: 6h");
    });
    it("quotes what YAML would take for something else", () => {
        for (const odd of ["true", "12", "a: b", "- x", "#x", "[a", "", " a", "null", "*a", "a #b"])
            expect(scalar(odd)).toMatch(/^".*"$/);
        for (const plain of ["客服 grpo 7b", "${SHARED_ROOT}/a.py:f", "name@2/train.parquet", "10.0.0.1/x"])
            expect(scalar(plain)).toBe(plain);
    });
    it("is made of a spec that is kept as JSON", () => {
        const spec = { workload: "ray", entrypoint: ["echo", "a, b"], env: { A: "1" }, n_gpus_per_node: 0.5 };
        expect(toYaml(spec)).toBe('workload: ray\nentrypoint: [echo, "a, b"]\nenv: {A: "1"}\nn_gpus_per_node: 0.5\n');
        expect(toYaml({ overrides: ["a.long.key.of.the.training=1", "another.long.key.of.the.training=2"] })).toBe(
            "overrides:\n  - a.long.key.of.the.training=1\n  - another.long.key.of.the.training=2\n",
        );
    });
    it("stands in an address", () => {
        expect(unpacked(packed(TEXT + "中文 + / ="))).toBe(TEXT + "中文 + / =");
        expect(unpacked("%%")).toBeNull();
        expect(unpacked("gIA")).toBeNull();
    });
});
