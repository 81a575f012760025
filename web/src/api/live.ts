// SPDX-License-Identifier: Apache-2.0
// live.ts - what changed at the server, told to whoever shows it. One stream of /v1/changes serves all tabs of a browser:
// it is held by a SharedWorker, or by a worker of this page's own where there is none.
//
// Ids are told, not rows: a page asks again for the rows it shows. After a lost connection the stream goes on where it
// was; when the server no longer knows where that was, everything is told as changed (ids null).
import { effect, signal } from "@preact/signals";
import { lang } from "../base/prefs";
import { session } from "./client";
import type { FromWorker, Topic } from "./stream";
import workerAt from "./worker?worker&url";

export type { Topic } from "./stream";
export type Link = { state: "connecting" | "live" } | { state: "lost"; since: number; again: number };
export const link = signal<Link>({ state: "connecting" });

type Heard = (ids: string[] | null) => void;
const heard = new Map<Topic, Set<Heard>>();

export function onChange(topic: Topic, f: Heard): () => void {
    const set = heard.get(topic) ?? new Set();
    heard.set(topic, set.add(f));
    return () => set.delete(f);
}

const back = new Set<() => void>();
/** The connection was lost and is there again: whoever asks on a page asks once more. */
export function onBack(f: () => void): () => void {
    back.add(f);
    return () => back.delete(f);
}

function tell(topic: Topic, ids: string[] | null) {
    for (const f of heard.get(topic) ?? []) f(ids);
}

function take(m: FromWorker) {
    if (m.what === "link") {
        const wasLost = link.value.state === "lost";
        link.value = m.link;
        if (wasLost && m.link.state === "live") for (const f of back) f();
    } else if (m.what === "all") for (const topic of heard.keys()) tell(topic, null);
    else if (m.what === "over") session.value = null;
    else tell(m.topic, m.ids);
}

/** The policy that argusd sends lets no text become the address of a script but this one. */
declare const trustedTypes:
    | {
          createPolicy: (
              name: string,
              of: { createScriptURL: (u: string) => string },
          ) => { createScriptURL: (u: string) => string };
      }
    | undefined;
function scriptAt(): string {
    if (typeof trustedTypes === "undefined") return workerAt;
    const policy = trustedTypes.createPolicy("argus", {
        createScriptURL: (u) => {
            if (u !== workerAt) throw new TypeError(`no script of ours: ${u}`);
            return u;
        },
    });
    return policy.createScriptURL(workerAt);
}
let script = "";

type Port = { postMessage: (m: unknown) => void; close: () => void };

function open(id: string): Port {
    const name = `argus-live-${id}`;
    script ||= scriptAt();
    if ("SharedWorker" in globalThis) {
        const w = new SharedWorker(script, { type: "module", name });
        w.port.onmessage = (e: MessageEvent<FromWorker>) => take(e.data);
        w.port.start();
        return { postMessage: (m) => w.port.postMessage(m), close: () => w.port.postMessage({ what: "bye" }) };
    }
    const w = new Worker(script, { type: "module", name });
    w.onmessage = (e: MessageEvent<FromWorker>) => take(e.data);
    return { postMessage: (m) => w.postMessage(m), close: () => w.terminate() };
}

let port: Port | null = null;
export const retryNow = () => port?.postMessage({ what: "retry" });

export function followChanges() {
    effect(() => {
        const id = session.value?.id;
        void lang.value;
        port?.close();
        port = id ? open(id) : null;
        link.value = { state: "connecting" };
    });
    addEventListener("pagehide", () => port?.close());
    addEventListener("pageshow", (e) => {
        if ((e as PageTransitionEvent).persisted && session.value) location.reload();
    });
    addEventListener("online", retryNow);
}
