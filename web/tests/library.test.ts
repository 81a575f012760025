// SPDX-License-Identifier: Apache-2.0
// What the pages of the library compute: parquet files, lines of JSON, the graph of a model's lineage.
import { describe, expect, it } from "vitest";
import { filesOf } from "../src/kit/drop";
import { cellText, columnsOf } from "../src/kit/rows";
import { hrefOfUser } from "../src/library/breaks";
import { boxesOf } from "../src/library/lineage";
import { hrefOfUse, saysOfUse } from "../src/library/onward";
import { lastOfEachName, placeOf, sendAll } from "../src/library/sending";
import { readParquet } from "../src/pages/files/parquet";

describe("a parquet file", () => {
    it("that is none is null, and no bytes of it are looked at twice", async () => {
        const asked: string[] = [];
        const part = async (range: string) => (asked.push(range), new Uint8Array(500).fill(0x1c));
        expect(await readParquet(500, part)).toBeNull();
        expect(asked.length).toBe(new Set(asked).size);
    });
});

describe("files that become a data set", () => {
    const file = (name: string, text: string) => new File([text], name);
    const never = new AbortController().signal;

    it("are all below one directory, and go on where they stopped", async () => {
        const files = [file("a", "12"), file("b", "345")];
        const place = placeOf(null, "alice", "sums", []);
        expect(place.at).toMatch(/^users\/alice\/datasets\/sums\/upload-[0-9a-f]{12}$/);
        const put: string[] = [];
        const told: number[] = [];
        let cut = true;
        const one = async (
            f: File,
            path: string,
            replace: boolean,
            sent: (n: number) => void,
            _: AbortSignal,
            to = path,
        ) => {
            expect(replace, "its own file, where the answer was lost").toBe(true);
            put.push(path.slice(place.at.length), to);
            sent(f.size - 1);
            if (f.name === "b" && cut) throw new Error("cut");
        };
        const send = () => sendAll(files, place, (n) => told.push(n), never, one);
        await expect(send()).rejects.toThrow("cut");
        cut = false;
        expect(placeOf(place, "alice", "sums", files)).toBe(place);
        await send();
        expect(put).toEqual(["/a", "data sums", "/b", "data sums", "/b", "data sums"]);
        expect(told).toEqual([1, 2, 4, 2, 4, 5]);
    });
    it("lie elsewhere under another name, and none is sent when that was stopped", async () => {
        const place = placeOf(null, "alice", "sums", []);
        expect(placeOf(place, "alice", "more", []).at).toContain("/more/");
        const old = file("old", "1");
        const before = { ...place, there: new Set([old]) };
        expect(placeOf(before, "alice", "sums", [old])).toBe(before);
        expect(placeOf(before, "alice", "sums", []).at).not.toBe(before.at);
        const stopped = new AbortController();
        stopped.abort();
        const put: string[] = [];
        const note = async (f: File) => put.push(f.name);
        await expect(sendAll([file("a", "1")], place, () => undefined, stopped.signal, note)).rejects.toThrow();
        expect(put).toEqual([]);
    });
    it("have one of each name, the last one chosen, and no folder", () => {
        const [old, other, anew] = [file("a", "1"), file("b", "2"), file("a", "3")] as const;
        expect(lastOfEachName([old, other, anew])).toEqual([anew, other]);
        const item = (f: File | null, isDirectory: boolean, kind = "file") => ({
            kind,
            getAsFile: () => f,
            webkitGetAsEntry: () => ({ isDirectory }),
        });
        const items = [item(old, false), item(other, true), item(null, false), item(anew, false, "string")];
        expect(filesOf({ items } as unknown as DataTransfer)).toEqual([old]);
    });
});

describe("what uses a thing that is to be removed", () => {
    it("leads to its page, whatever its name is", () => {
        const of = (kind: "job" | "service" | "pipeline" | "preset", name: string, owner: string) =>
            hrefOfUser({ kind, name, owner, keeps: false });
        expect([
            of("job", "grpo-1", "alice"),
            of("service", "answers", "alice"),
            of("pipeline", "night?", "alice"),
            of("preset", "sft", "rl"),
        ]).toEqual(["/jobs/grpo-1", "/services/answers", "/pipelines/night%3F?user=alice", "/presets?name=rl%3Asft"]);
    });
});

describe("rows", () => {
    it("have the columns of all of them, and cells that are texts", () => {
        expect(columnsOf([{ a: 1 }, { b: [1] }, null, "x"])).toEqual(["a", "b"]);
        expect([cellText({ x: 1 }), cellText(null), cellText("\u202ea")]).toEqual(['{"x":1}', "", "\ufffda"]);
    });
});

describe("the lineage of a model", () => {
    it("goes from what was read to the model", () => {
        const lineage = {
            job: "grpo-1",
            step: 10,
            merge: "merging",
            snapshot: [{ name: "mine@1" }, { path: "/x" }],
            data: [{ ref: "sums@1" }, "plain@2"],
            more_data: 3,
            model: { ref: "base@1" },
        };
        const boxes = boxesOf("tuned@1", lineage);
        expect(boxes.map((b) => b.column)).toEqual([0, 0, 0, 0, 0, 0, 1, 2, 3]);
        expect(boxes.map((b) => b.href)).toEqual([
            "/snapshots?name=mine%401", undefined, "/data/sums%401", "/data/plain%402", undefined, "/models/base%401",
            "/jobs/grpo-1", "/jobs/merging", undefined,
        ]); // prettier-ignore
        expect(boxes.at(-1)).toMatchObject({ says: "tuned@1", isEnd: true });
    });
    it("has hashes, and what judged the checkpoint beside what was made of it", () => {
        const boxes = boxesOf("tuned@1", {
            job: "grpo-1",
            data: [{ ref: "sums@1", hash: "0123456789abcdef" }],
            merge: "merging",
            eval: { job: "grpo-1-eval-10", values: { win: 0.75, odd: "x" } },
        });
        expect(boxes.map((b) => [b.what, b.column, b.row])).toEqual([
            ["Data", 0, 0],
            ["Training", 1, 0],
            ["Merge", 2, 0],
            ["Eval", 2, 1],
            ["Model", 3, 0],
        ]);
        expect(boxes[0]!.hash).toBe("01234567");
        expect(boxes[3]).toMatchObject({ says: "win 0.75", href: "/jobs/grpo-1-eval-10", isLeaf: true });
        expect(boxes.at(-1)!.isEnd).toBe(true);
        expect(boxesOf("x", { job: "j", eval: 0.7 }).map((b) => b.what)).toEqual(["Training", "Model"]);
        expect(boxesOf("x", { eval: { values: { a: 1 } } })).toEqual([]);
    });
    it("is empty where nothing is known, and takes what a person wrote", () => {
        expect(boxesOf("x", null)).toEqual([]);
        expect(boxesOf("x", { eval: 1 })).toEqual([]);
        expect(boxesOf("x", { data: "a" }).length).toBe(2);
    });
});

describe("what became of a model", () => {
    const use = {
        kind: "run", name: "sft-to-model-7", owner: "alice", step: "publish", made: true, state: "SUCCEEDED",
        version: 0, has_traffic: false, endpoint: null, said: false,
    } as const; // prettier-ignore

    it("leads to the page of each thing", () => {
        expect(hrefOfUse(use)).toBe("/pipelines/-/sft-to-model-7");
        expect(hrefOfUse({ ...use, kind: "service", name: "sums" })).toBe("/services/sums");
        expect(hrefOfUse({ ...use, kind: "model", name: "tuned@1" })).toBe("/models/tuned%401");
        expect(hrefOfUse({ ...use, kind: "job", name: "grpo-1" })).toBe("/jobs/grpo-1");
    });
    it("says what each does with it", () => {
        expect(saysOfUse(use)).toBe("publish · made it");
        expect(saysOfUse({ ...use, made: false })).toBe("publish · reads it");
        const service = { ...use, kind: "service", endpoint: "/v1/services/sums/v1" } as const;
        expect(saysOfUse(service)).toBe("without traffic");
        expect(saysOfUse({ ...service, has_traffic: true })).toBe("/v1/services/sums/v1");
    });
});
