// SPDX-License-Identifier: Apache-2.0
// What the list of jobs is asked for, from its address alone.
import { describe, expect, it } from "vitest";
import { askOf, cliOf, countsOf, orderOf, toggled } from "../src/pages/jobs/asked";

const q = (text: string) => new URLSearchParams(text);

describe("an address of the list", () => {
    it("is an order where the server has it", () => {
        expect(orderOf("-gpu_hours")).toEqual({ sort: "gpu_hours", order: "desc" });
        expect(orderOf("name")).toEqual({ sort: "name", order: "asc" });
        expect(orderOf("eta")).toBeUndefined(); // known to the forecast alone
        expect(orderOf(null)).toBeUndefined();
    });
    it("is a request", () => {
        const ask = askOf(q("state=live&flag=HUNG&sort=-step&after=d16-7&mine=1"));
        expect(ask).toMatchObject({
            state: "live",
            flag: "HUNG",
            sort: "step",
            order: "desc",
            cursor: "d16-7",
            all: false,
        });
        expect(ask.user).toBeUndefined();
        expect(askOf(q("ran_since=7d"))).toMatchObject({ ran_since: "7d", since: undefined });
        expect(askOf(q("failure=gpu_oom&gpus=65-"))).toMatchObject({ failure: "gpu_oom", gpus: "65-" });
        const counts = countsOf(q("state=live&sort=-step&after=d16-7"));
        expect(counts).toMatchObject({ state: "live", limit: 1, count: true });
        expect(counts.cursor ?? counts.sort).toBeUndefined(); // of all pages
    });
    it("is a command line", () => {
        const line = cliOf(q("user=a b&sort=name&mine=0"), (w) => `'${w}'`);
        expect(line).toBe("argus ls -a --user 'a b' --sort name --order asc");
        expect(cliOf(q("ran_since=7d&ran_until=1d"), (w) => w)).toBe("argus ls -a --ran-since 7d --ran-until 1d");
        expect(cliOf(q("failure=gpu_oom&gpus=5-8"), (w) => w)).toBe("argus ls -a --failure gpu_oom --gpus 5-8");
        expect(cliOf(q("failure_node=n1,n2"), (w) => w)).toBe("argus ls -a --failure-node n1,n2");
    });
});

describe("a facet", () => {
    it("adds and takes away, and ends 'live'", () => {
        expect(toggled(null, "FAILED")).toBe("FAILED");
        expect(toggled("FAILED,TIMEOUT", "FAILED")).toBe("TIMEOUT");
        expect(toggled("live", "FAILED")).toBe("FAILED");
    });
});
