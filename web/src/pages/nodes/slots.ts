// SPDX-License-Identifier: Apache-2.0
// slots.ts - the GPUs of a machine one by one: who holds each, and what its health was. Nothing is drawn here.
import type { Event, JobItem, Node, NodeSlot } from "../../made/api";

export type SlotKind = "used" | "idle" | "held" | "lost" | "foreign" | "draining" | "free" | "broken";
export const SLOT_KINDS: SlotKind[] = ["used", "idle", "lost", "held", "foreign", "draining", "free", "broken"];

export interface Slot {
    i: number;
    kind: SlotKind;
    /** Ids of the jobs that hold it or a share of it; "?0" "?1" …: jobs that may not be seen. */
    jobs: string[];
    /** What it does now, where the machine tells. */
    now?: NodeSlot;
}
/** Neighbours that the same jobs hold: a bracket over them. */
export interface Bracket {
    from: number;
    n: number;
    kind: SlotKind;
    jobs: string[];
}
export const isHidden = (id: string) => id.startsWith("?");

type Held = Pick<Node, "gpus" | "leases" | "state" | "slots">;

function kindOf(jobs: (JobItem | undefined)[]): SlotKind {
    const flags = new Set(jobs.flatMap((j) => j?.flags ?? []));
    if (flags.has("UNKNOWN")) return "lost";
    if (flags.has("HOLDING")) return "held";
    return flags.has("IDLE") || flags.has("HUNG") ? "idle" : "used";
}

/** What others hold has no known place: it is drawn at the end. */
export function slotsOf(node: Held, jobs: Map<string, JobItem>): Slot[] {
    const most = Math.max(-1, ...node.leases.flatMap((l) => l.gpu_ids));
    const n = Math.min(64, Math.max(Math.ceil(node.gpus.total), most + 1));
    const slots: Slot[] = Array.from({ length: n }, (_, i) => ({ i, kind: "free", jobs: [] }));
    node.leases.forEach((l, k) => l.gpu_ids.forEach((i) => slots[i]?.jobs.push(l.job ?? `?${k}`)));
    for (const s of slots) if (s.jobs.length) s.kind = kindOf(s.jobs.map((id) => jobs.get(id)));
    const left = slots.filter((s) => !s.jobs.length).reverse();
    const take = (count: number | undefined, kind: SlotKind) => {
        for (const s of left.splice(0, Math.ceil(count ?? 0))) s.kind = kind;
    };
    take(node.gpus.foreign, "foreign");
    take(node.gpus.held, "held");
    if (node.state === "draining") take(left.length, "draining");
    else if (node.gpus.bad > 0) take(left.length, "broken");
    for (const s of node.slots ?? []) if (slots[s.gpu]) slots[s.gpu]!.now = s;
    return slots;
}

export function bracketsOf(slots: Slot[]): Bracket[] {
    const found: Bracket[] = [];
    for (const s of slots) {
        const last = found.at(-1);
        if (last && last.kind === s.kind && last.jobs.join() === s.jobs.join()) last.n++;
        else found.push({ from: s.i, n: 1, kind: s.kind, jobs: s.jobs });
    }
    return found.filter((b) => b.jobs.length || b.kind === "foreign");
}

// ---- health ----

export type Health = "ok" | "warn" | "bad" | "none";
const AFTER: Record<string, Health> = {
    node_online: "ok",
    node_healthy: "ok",
    node_ssh_back: "ok",
    node_draining: "warn",
    node_pending: "warn",
    node_ssh_unreachable: "warn",
    node_trouble: "warn",
    node_unhealthy: "bad",
    node_offline: "bad",
    node_added: "warn",
};
const WORSE: Health[] = ["none", "ok", "warn", "bad"];

/** Of `cells` equal parts of the time from `from` to `to` (ms), the worst that each saw. What was before the oldest
 * event is what that event came from, as far as it is told. events: newest first. */
export function healthCells(events: Event[], is: Health, from: number, to: number, cells: number): Health[] {
    const out = new Array<Health>(cells).fill("none");
    const told = events.filter((e) => e.kind in AFTER);
    const note = (a: number, b: number, health: Health) => {
        const width = (to - from) / cells;
        const first = Math.max(0, Math.floor((a - from) / width));
        const last = Math.min(cells - 1, Math.ceil((b - from) / width) - 1);
        for (let i = first; i <= last; i++) if (WORSE.indexOf(health) > WORSE.indexOf(out[i]!)) out[i] = health;
    };
    let until = to;
    let health = is;
    for (const e of told) {
        const at = Date.parse(e.at);
        note(Math.max(at, from), until, health);
        until = Math.min(at, to);
        if (at <= from) return out;
        const before = told[told.indexOf(e) + 1];
        health = before
            ? AFTER[before.kind]!
            : e.kind === "node_added"
              ? "none"
              : e.kind === "node_healthy"
                ? "bad"
                : "ok";
    }
    if (health !== "none") note(from, until, health);
    return out;
}

export const healthNow = (n: Pick<Node, "health" | "state">): Health =>
    n.health === "ok" || n.health === "cleaning"
        ? "ok"
        : n.state === "offline" || n.health === "unhealthy"
          ? "bad"
          : "warn";
