// SPDX-License-Identifier: Apache-2.0
// readings.ts - the commands of an SOP that only read, as the requests that they are: what each would print now, by the
// reader's own session. A route here is a GET by its type, so no button of an answer can change anything.
import type { Routes } from "../../made/api";
import { address, call, type Ask, type Route } from "../../api/client";
import { visible } from "../../base/say";
import { filled, missingOf, wordsOf, type Given } from "./deeds";

type Get = Extract<Route, `GET ${string}`>;
type Cells = (string | number | null)[];

/** A line of a command as its words say it: arguments, and options with their values ("" of a switch). */
interface Line {
    args: string[];
    options: Record<string, string>;
}
interface Kind<R extends Get> {
    /** The words that it begins with. */
    begins: string;
    /** How many arguments follow. */
    args?: number;
    options?: readonly string[];
    route: R;
    ask?: (line: Line) => Ask<R>;
    rows: (of: Routes[R]["reply"]) => Cells[];
}
interface Known {
    begins: string[];
    args: number;
    options: readonly string[];
    of: (line: Line) => Pick<Reading, "path" | "look">;
}

/** A line that can be asked now. */
export interface Reading {
    line: string;
    /** Values that the operator has not set. */
    missing: string[];
    /** What is asked, "/v1/nodes". */
    path: string;
    /** The lines of the answer; a refusal is thrown. */
    look: () => Promise<string[]>;
}

const SWITCHES = ["all", "verify"];
const WORDS_MAX = 20;

/** Cells of one place below each other, as a terminal shows them; of nothing no cell. */
export function linesOf(rows: Cells[]): string[] {
    const said = rows.map((row) => row.map((cell) => visible(String(cell ?? "-")) || "-"));
    const wide = (i: number) => Math.max(...said.map((row) => row[i]?.length ?? 0));
    return said.map((row) => row.map((cell, i) => (i < row.length - 1 ? cell.padEnd(wide(i)) : cell)).join("  "));
}

function kind<R extends Get>(k: Kind<R>): Known {
    return {
        begins: k.begins.split(" "),
        args: k.args ?? 0,
        options: k.options ?? [],
        of: (line) => {
            const ask: Ask<R> = k.ask ? k.ask(line) : {};
            return { path: address(k.route, ask), look: async () => linesOf(k.rows(await call(k.route, ask))) };
        },
    };
}

const numberOf = (text: string | undefined) => (text && /^\d+$/.test(text) ? Number(text) : undefined);
const cellsOfEvent = (e: Routes["GET /v1/events"]["reply"]["events"][number]): Cells => [
    e.at,
    e.kind,
    e.object ?? e.job,
    e.text,
];

/** The first that a line fits is its kind: of two that begin alike the longer stands first. */
const KINDS: Known[] = [
    kind({ begins: "whoami", route: "GET /v1/whoami", rows: (w) => [[w.user, w.role]] }),
    kind({
        begins: "node ls",
        route: "GET /v1/nodes",
        rows: (of) => of.nodes.map((n) => [n.name, n.state, n.health, n.jobs.join(","), n.reason.text]),
    }),
    kind({
        begins: "gpus",
        route: "GET /v1/pools",
        rows: (of) =>
            of.pools.map((p) => [p.pool ?? "*", `${p.gpus.free} free`, `${p.gpus.used} used`, `${p.gpus.bad} bad`]),
    }),
    kind({
        begins: "ls",
        options: ["all", "state", "flag", "failure", "project", "ran-since", "limit"],
        route: "GET /v1/jobs",
        ask: ({ options: o }) => ({
            query: {
                all: "all" in o,
                state: o.state === "live" ? o.state : o.state?.toUpperCase(),
                flag: o.flag?.toUpperCase(),
                failure: o.failure,
                project: o.project,
                ran_since: o["ran-since"],
                limit: numberOf(o.limit) ?? 50,
            },
        }),
        rows: (of) => of.jobs.map((j) => [j.id, j.state, j.flags.join(","), j.user, j.reason.text]),
    }),
    kind({
        begins: "status",
        args: 1,
        route: "GET /v1/jobs/{id}",
        ask: ({ args }) => ({ path: { id: args[0]! } }),
        rows: (j) => [[j.id, j.state, j.flags.join(","), j.reason.text]],
    }),
    kind({
        begins: "why",
        args: 1,
        route: "GET /v1/jobs/{id}/why",
        ask: ({ args }) => ({ path: { id: args[0]! } }),
        rows: (y) => [[y.state, y.text], ...(y.hint_text ? [["", y.hint_text]] : [])],
    }),
    kind({
        begins: "diagnose",
        args: 1,
        route: "GET /v1/jobs/{id}/findings",
        ask: ({ args }) => ({ path: { id: args[0]! } }),
        rows: (of) => of.findings.map((f) => [f.class, f.advice]),
    }),
    ...["cluster ls", "cluster status"].map((begins) =>
        kind({
            begins,
            route: "GET /v1/clusters",
            rows: (of) => of.clusters.map((c) => [c.name, c.up ? "up" : "down", `head ${c.head.state}`, c.reason.text]),
        }),
    ),
    kind({
        begins: "doctor",
        route: "GET /v1/doctor",
        rows: (of) => of.checks.map((c) => [c.name, c.state, c.fix ? `${c.text}; ${c.fix}` : c.text]),
    }),
    kind({
        begins: "alert ls",
        route: "GET /v1/alerts",
        ask: () => ({ query: { state: "open" } }),
        rows: (of) => of.alerts.map((a) => [a.severity, a.rule, a.name, a.text]),
    }),
    kind({
        begins: "backup ls",
        route: "GET /v1/backups",
        rows: (of) => of.backups.map((b) => [b.name, b.taken_at, b.bytes]),
    }),
    kind({
        begins: "events --verify",
        route: "GET /v1/events:verify",
        rows: (v) => [[v.ok ? "whole" : "broken", `${v.count} events`, v.reason.text]],
    }),
    kind({
        begins: "events",
        args: 1,
        route: "GET /v1/jobs/{id}/events",
        ask: ({ args }) => ({ path: { id: args[0]! } }),
        rows: (of) => of.events.map(cellsOfEvent),
    }),
    kind({
        begins: "events",
        options: ["kind", "actor", "limit"],
        route: "GET /v1/events",
        ask: ({ options: o }) => ({
            query: { kind: o.kind, actor: o.actor, limit: numberOf(o.limit) ?? 50, newest_first: true },
        }),
        rows: (of) => of.events.map(cellsOfEvent).reverse(),
    }),
];

/** null: it has an option without its value. */
function lineOf(words: string[]): Line | null {
    const line: Line = { args: [], options: {} };
    for (let i = 0; i < words.length; i++) {
        const name = /^--([\w-]+)$/.exec(words[i]!)?.[1];
        if (!name) line.args.push(words[i]!);
        else if (SWITCHES.includes(name)) line.options[name] = "";
        else if (words[i + 1] !== undefined) line.options[name] = words[++i]!;
        else return null;
    }
    return line;
}

/** What a line of a command reads; null: it does something, or what it reads has no route here. */
export function readingOf(line: string, given: Given): Reading | null {
    const said = wordsOf(line);
    if (!said || said[0] !== "argus" || said.length > WORDS_MAX) return null;
    const words = said.slice(1).map((word) => filled(word, given));
    for (const k of KINDS) {
        if (!k.begins.every((word, i) => words[i] === word)) continue;
        const rest = lineOf(words.slice(k.begins.length));
        if (!rest || rest.args.length !== k.args || rest.args.some((a) => a.startsWith("-"))) continue;
        if (Object.keys(rest.options).every((name) => k.options.includes(name)))
            return { line, missing: missingOf(line, given), ...k.of(rest) };
    }
    return null;
}

/** Those of all lines of a command. */
export const readingsOf = (command: string, given: Given): Reading[] =>
    command.split("\n").flatMap((line) => readingOf(line, given) ?? []);
