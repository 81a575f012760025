// SPDX-License-Identifier: Apache-2.0
// Pages of the list of jobs behind the first one: in order, each job once, no further than asked for.
import { describe, expect, it } from "vitest";
import type { JobItem, JobList } from "../src/made/api";
import { chained, joined } from "../src/pages/jobs/further";

const jobs = (...ids: string[]) => ids.map((id) => ({ id }) as JobItem);
const ids = (rows: JobItem[]) => rows.map((j) => j.id).join(" ");

describe("further pages", () => {
    const pages: Record<string, JobList> = {
        c1: { jobs: jobs("b", "c"), next_cursor: "c2" },
        c2: { jobs: jobs("d"), next_cursor: "c3" },
        c3: { jobs: jobs("e"), next_cursor: null },
    };
    const asked: string[] = [];
    const ask = async (cursor: string) => {
        asked.push(cursor);
        return pages[cursor]!;
    };
    it("are asked for one after the other, by the cursor of the one before", async () => {
        const got = await chained(ask, "c1", 2);
        expect(asked).toEqual(["c1", "c2"]);
        expect(got.map((p) => [p.cursor, p.next])).toEqual([
            ["c1", "c2"],
            ["c2", "c3"],
        ]);
        expect((await chained(ask, "c1", 9)).at(-1)!.next).toBeNull();
        expect(await chained(ask, null, 9)).toEqual([]);
    });
    it("stand behind the first, and a job that moved stands once", async () => {
        const first = jobs("a", "b");
        expect(ids(joined(first, await chained(ask, "c1", 9)))).toBe("a b c d e");
        expect(joined(first, [])).toBe(first); // nothing is drawn again for it
    });
});
