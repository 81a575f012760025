// SPDX-License-Identifier: Apache-2.0
// sops.test.ts - pages of docs/sop as values, those that are shipped above all; and what of a command a page does.
import { expect, test } from "vitest";
import { exportsOf, missingOf, placeOf, planOf } from "../src/pages/sops/deeds";
import { allShipped, shipped, TEXTS } from "../src/pages/sops/shipped";
import { anchorOf, commandsOf, piecesOf, sopOf, type Block, type Sop } from "../src/pages/sops/sop";
import { linesOf, readingOf, readingsOf } from "../src/pages/sops/readings";
import { shell } from "../src/kit/parts";

const PAGE = `# Light out: a lamp

For whom
it is. [中文](light.zh.md)

## You need

- a ladder,
  a long one
- hands

    export LAMP=lamp-7                        # which one
    export KEY="$HOME/a key"

## Steps

**1. Look.** First of all.

\`\`\`sh look
lamp ls | grep x
\`\`\`

It is \`off\`.

**2. Wait**, it may be cold.

## If it does not work

| you see | do |
| --- | --- |
| \`a | b\` | **Run** to [others](other.md#x). |

\`\`\`sh check
lamp check "$LAMP"
lamp ls
\`\`\`
`;

/** All values that the page asks the operator for. */
const valuesOf = (sop: Sop) => sop.sections.flatMap((s) => s.lead.flatMap((b) => (b.kind === "values" ? b.of : [])));
const text = (said: string): Block => ({ kind: "text", of: [{ kind: "text", text: said }] });

test("a page has its values, its steps, and beside each command the answer that is expected", () => {
    const sop = sopOf(PAGE);
    expect(sop.title).toBe("Light out: a lamp");
    const [intro, need, steps, trouble] = sop.sections;
    expect(intro!.lead).toEqual([
        {
            kind: "text",
            of: [
                { kind: "text", text: "For whom it is. " },
                { kind: "link", text: "中文", to: "light.zh.md" },
            ],
        },
    ]);
    expect(need!.lead[0]).toEqual({
        kind: "list",
        items: [[{ kind: "text", text: "a ladder, a long one" }], [{ kind: "text", text: "hands" }]],
    });
    expect(valuesOf(sop)).toEqual([
        { name: "LAMP", value: "lamp-7", says: "which one" },
        { name: "KEY", value: '"$HOME/a key"', says: "" },
    ]);
    expect(steps!.steps).toEqual([
        {
            title: "1. Look.",
            lead: [text("First of all.")],
            deeds: [
                {
                    command: "lamp ls | grep x",
                    expected: [
                        {
                            kind: "text",
                            of: [
                                { kind: "text", text: "It is " },
                                { kind: "code", text: "off" },
                                { kind: "text", text: "." },
                            ],
                        },
                    ],
                },
            ],
        },
        { title: "2. Wait", lead: [text("it may be cold.")], deeds: [] },
    ]);
    expect(trouble!.id).toBe("if-it-does-not-work");
    expect(trouble!.lead).toEqual([
        {
            kind: "table",
            head: [[{ kind: "text", text: "you see" }], [{ kind: "text", text: "do" }]],
            rows: [
                [
                    [{ kind: "code", text: "a | b" }],
                    [
                        { kind: "strong", text: "Run" },
                        { kind: "text", text: " to " },
                        { kind: "link", text: "others", to: "other.md#x" },
                        { kind: "text", text: "." },
                    ],
                ],
            ],
        },
    ]);
    expect(commandsOf(sop)).toEqual(["lamp ls | grep x", 'lamp check "$LAMP"\nlamp ls']);
});

test("lines of a Chinese paragraph are joined without a space", () => {
    expect(sopOf("# 一\n\n先看，\n再做\nargus 说").sections[0]!.lead).toEqual([text("先看，再做 argus 说")]);
});

test("markup is text, and so is what is not closed", () => {
    expect(piecesOf("<b>x</b> **a `b")).toEqual([{ kind: "text", text: "<b>x</b> **a `b" }]);
    expect(anchorOf("If it does not work")).toBe("if-it-does-not-work");
    expect(anchorOf("如果不成功")).toBe("如果不成功");
});

/** What a person reads of it, without the marks of its writing, in any order and with nothing between. */
const wordsOf = (raw: string) =>
    [
        ...raw
            .replace(/^```.*$/gm, "")
            .replace(/\]\([^)]*\)/g, "")
            .replace(/^\|[\s|:-]+\|$/gm, ""),
    ]
        .filter((c) => /[\p{L}\p{N}]/u.test(c))
        .sort()
        .join("");
function textsOf(x: unknown, key = ""): string {
    if (typeof x === "string") return ["kind", "to", "id"].includes(key) ? "" : x;
    if (Array.isArray(x)) return x.map((y) => textsOf(y)).join("");
    if (x === null || typeof x !== "object") return "";
    const isValue = "value" in x;
    return (
        (isValue ? "export" : "") +
        Object.entries(x)
            .map(([k, y]) => textsOf(y, k))
            .join("")
    );
}

test.each(Object.keys(TEXTS))("of the shipped page %s nothing is lost", (name) => {
    for (const raw of [TEXTS[name]!.en, TEXTS[name]!.zh]) {
        if (raw === null) continue;
        const sop = sopOf(raw);
        expect(wordsOf(textsOf(sop))).toBe(wordsOf(raw));
        const fenced = [...raw.matchAll(/^```sh \S+\n([\s\S]*?)\n```$/gm)].map((m) => m[1]);
        expect(fenced.length).toBeGreaterThan(0);
        expect(commandsOf(sop)).toEqual(fenced);
        const wants = new Set(fenced.flatMap((c) => missingOf(c!, {})));
        for (const v of valuesOf(sop)) expect(wants).toContain(v.name);
    }
});

test("a page is shown in the reader's language, or else in English", () => {
    expect(allShipped("en").every((x) => x.lang === "en" && x.sop.title)).toBe(true);
    expect(shipped("reclaim", "zh")!.lang).toBe("zh");
    expect(shipped("reclaim", "zh")!.sop.title).toMatch(/[\u4e00-\u9fff]/);
    expect(shipped("nowhere", "en")).toBeNull();
    expect(shipped("constructor", "en")).toBeNull();
    const bare = Object.keys(TEXTS).find((name) => TEXTS[name]!.zh === null);
    if (bare) expect(shipped(bare, "zh")!.lang).toBe("en");
});

test("a plan is asked for with what the operator set, and not before", () => {
    const line = 'argus ops plan stop_many --project "$PROJECT"';
    expect(planOf(line, {})).toEqual({
        action: "stop_many",
        body: { project: "$PROJECT" },
        missing: ["PROJECT"],
    });
    expect(planOf(line, { PROJECT: "rl hf" })).toEqual({
        action: "stop_many",
        body: { project: "rl hf" },
        missing: [],
    });
    expect(planOf("argus ops plan remove_node --node n1 --force", {})!.body).toEqual({ node: "n1", force: true });
    expect(planOf("argus ops plan stop_many --jobs a,b", {})!.body).toEqual({ jobs: ["a", "b"] });
    for (const other of [
        "argus ops apply x",
        "argus ops plan",
        "argus ops plan burn --node x",
        "argus ops plan stop_many --project",
        "argus ops plan stop_many --what x",
        "argus ops plan stop_many --project $(whoami)",
        "argus ops plan stop_many --project x | cat",
    ])
        expect(planOf(other, {}), other).toBeNull();
});

test("every plan of a shipped page has its button", () => {
    const plans = allShipped("en").flatMap((x) => commandsOf(x.sop).flatMap((c) => c.split("\n")));
    const made = plans.filter((line) => line.startsWith("argus ops plan "));
    expect(made.length).toBeGreaterThan(0);
    for (const line of made) expect(planOf(line, {}), line).not.toBeNull();
});

test("a command leads to the page that has it, with the name once it is set", () => {
    const drain = 'argus node drain "$NODE" --wait';
    expect(placeOf(drain, {})).toEqual({ page: "nodes", path: "/nodes", query: {} });
    expect(placeOf(drain, { NODE: "n7" })!.query).toEqual({ node: "n7" });
    expect(placeOf('x\nargus events --actor "$WHO"', { WHO: "eve" })!.query).toEqual({ actor: "eve" });
    expect(placeOf("argus node add n", {})!.query).toEqual({ do: "add" });
    expect(placeOf("argus backup ls", {})).toBeNull();
});

test("what was set is quoted for a shell; an example stands as it is", () => {
    const values = valuesOf(sopOf(PAGE));
    expect(exportsOf(values, { LAMP: "it's 7" }, shell)).toBe(`export LAMP='it'\\''s 7'\nexport KEY="$HOME/a key"`);
});

/** What a line would ask. */
const pathOf = (line: string, given = {}) => readingOf(line, given)?.path ?? null;

test("a reading command is the request that it is", () => {
    expect(pathOf("argus node ls")).toBe("/v1/nodes");
    expect(pathOf("argus ls --all --state live")).toBe("/v1/jobs?all=true&state=live&limit=50");
    expect(pathOf("argus ls --all --flag unknown,HUNG")).toBe("/v1/jobs?all=true&flag=UNKNOWN%2CHUNG&limit=50");
    expect(pathOf("argus ls --all --failure disk_full --ran-since 1d")).toBe(
        "/v1/jobs?all=true&failure=disk_full&ran_since=1d&limit=50",
    );
    expect(pathOf("argus ls --limit 20")).toBe("/v1/jobs?all=false&limit=20");
    expect(pathOf('argus status "$JOB"', { JOB: "sft 1" })).toBe("/v1/jobs/sft%201");
    expect(pathOf('argus events "$JOB"', { JOB: "sft-1" })).toBe("/v1/jobs/sft-1/events");
    expect(pathOf("argus events --verify")).toBe("/v1/events:verify");
    expect(pathOf("argus events --kind ray_new_session --limit 1")).toBe(
        "/v1/events?kind=ray_new_session&limit=1&newest_first=true",
    );
    expect(pathOf("argus cluster status")).toBe("/v1/clusters");
    expect(readingOf('argus why "$JOB"', {})!.missing).toEqual(["JOB"]);
    expect(readingOf('argus why "$JOB"', { JOB: "x" })!.missing).toEqual([]);
});

test("what does something, or has no route, is not asked", () => {
    for (const other of [
        "argus node rm n1",
        "argus node drain n1",
        "argus stop j1",
        "argus ops plan stop_many --user x",
        'argus ops apply "$PLAN"',
        "argus retry j1",
        "argus token add --user x",
        "argus ls --watch",
        "argus ls --state",
        "argus ls -q | head -n 1",
        "argus node ls; reboot",
        "argus status",
        "argus status a b",
        "argus why $(whoami)",
        "argus events --verify --limit 1",
        "ls",
        "",
    ])
        expect(readingOf(other, { PLAN: "p" }), other).toBeNull();
    expect(readingsOf("argus node ls\nargus node rm x\nargus gpus", {}).map((r) => r.path)).toEqual([
        "/v1/nodes",
        "/v1/pools",
    ]);
});

test("each shipped page lets some answer be seen, and asks by GET alone", () => {
    for (const { sop, name } of allShipped("en")) {
        const found = commandsOf(sop).flatMap((command) => readingsOf(command, {}));
        expect(found.length, name).toBeGreaterThan(0);
        for (const r of found) expect(r.path).toMatch(/^\/v1\//);
    }
});

test("an answer stands in columns, and what could act in a terminal is seen", () => {
    expect(
        linesOf([
            ["n1", "online", 3],
            ["node-22", null, "\u202ex"],
        ]),
    ).toEqual(["n1       online  3", "node-22  -       \ufffdx"]);
    expect(linesOf([])).toEqual([]);
});
