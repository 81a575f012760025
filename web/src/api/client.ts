// SPDX-License-Identifier: Apache-2.0
// client.ts - requests to /v1, typed by the routes that argusd itself describes (made/api.ts, from openapi.json).
//
// The browser is logged in by a cookie that no script reads; a change carries the session's csrf word. A refusal is
// thrown as Refusal: the server's sentence, in the language of the page. 401 makes the login come up and nothing else.
// A server that has just started says not_yet to what it did not begin: it is asked again, as the command line does.
import { signal } from "@preact/signals";
import type { OwnSession, Problem, Routes } from "../made/api";
import { lang } from "../base/prefs";

export type Route = keyof Routes;
type Opt<T> = keyof T extends never ? { [k in never]?: never } : T;
export interface Ask<R extends Route> {
    path?: Opt<Routes[R]["path"]>;
    query?: Routes[R]["query"];
    body?: Routes[R]["body"];
    /** In the place of a body: a text in YAML, or bytes. */
    raw?: string | Blob;
    /** The same request again is the same deed. */
    idempotencyKey?: string;
    /** "bytes=0-99" */
    range?: string;
    signal?: AbortSignal;
    /** Of a long list that may be the same as before. */
    etag?: string;
}

/** For idempotencyKey: one that nobody else has. */
export function newKey(): string {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return `web-${Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("")}`;
}

/** undefined: not known yet; null: nobody is logged in. */
export const session = signal<OwnSession | null | undefined>(undefined);

export class Refusal extends Error {
    constructor(
        readonly status: number,
        readonly code: string,
        readonly detail: string,
        readonly hint: string | undefined,
        readonly problem: Problem | null,
    ) {
        super(detail);
    }

    /** The server was asked too early and has begun nothing: the same request succeeds in a moment. */
    get isNotYet(): boolean {
        return this.status === 503 && this.problem?.type === "urn:argus:problem:not_yet";
    }
}

/** Nobody answered, or an argusd that has just started, or something between that does not reach it: not a word about
 * what was asked. */
export const isAway = (why: unknown) => why instanceof Refusal && [0, 502, 503, 504].includes(why.status);

export function address<R extends Route>(route: R, ask: Ask<R> = {}): string {
    let at: string = route.slice(route.indexOf(" ") + 1);
    for (const [name, value] of Object.entries((ask.path ?? {}) as Record<string, string>))
        at = at.replace(`{${name}}`, encodeURIComponent(value));
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries((ask.query ?? {}) as Record<string, unknown>))
        if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
    const text = query.toString();
    return text ? `${at}?${text}` : at;
}

async function refusal(reply: Response): Promise<Refusal> {
    const text = await reply.text();
    try {
        const p = JSON.parse(text) as Problem;
        return new Refusal(reply.status, p.code, p.detail, p.hint, p);
    } catch {
        return new Refusal(reply.status, String(reply.status), text.slice(0, 200) || reply.statusText, undefined, null);
    }
}

const NOT_YET_MOST_MS = 10_000;
const PAUSE_MS = 1000; // where the refusal does not say when to ask again

/** Until then, or until the request is given up: that throws AbortError. */
function pause(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((done, fail) => {
        const stop = () => {
            clearTimeout(timer);
            fail(new DOMException("the request was given up", "AbortError"));
        };
        const timer = setTimeout(() => {
            signal?.removeEventListener("abort", stop);
            done();
        }, ms);
        if (signal?.aborted) stop();
        else signal?.addEventListener("abort", stop, { once: true });
    });
}

async function sendOnce<R extends Route>(route: R, ask: Ask<R>): Promise<Response> {
    const method = route.slice(0, route.indexOf(" "));
    const headers: Record<string, string> = { "Accept-Language": lang.value === "zh" ? "zh-CN" : "en" };
    if (ask.body !== undefined && ask.body !== null) headers["Content-Type"] = "application/json";
    if (ask.raw !== undefined)
        headers["Content-Type"] = typeof ask.raw === "string" ? "application/yaml" : "application/octet-stream";
    if (ask.range) headers.Range = ask.range;
    if (ask.idempotencyKey) headers["Idempotency-Key"] = ask.idempotencyKey;
    if (method !== "GET" && session.value) headers["Argus-CSRF"] = session.value.csrf;
    if (ask.etag) headers["If-None-Match"] = ask.etag;
    try {
        return await fetch(address(route, ask), {
            method,
            headers,
            body: ask.raw ?? (ask.body !== undefined && ask.body !== null ? JSON.stringify(ask.body) : undefined),
            signal: ask.signal,
            credentials: "same-origin",
        });
    } catch (e) {
        if ((e as Error).name === "AbortError") throw e;
        throw new Refusal(
            0,
            "no_connection",
            lang.value === "zh" ? "argusd 没有应答" : "argusd does not answer",
            undefined,
            null,
        );
    }
}

export async function send<R extends Route>(route: R, ask: Ask<R> = {}): Promise<Response> {
    const until = performance.now() + NOT_YET_MOST_MS;
    for (;;) {
        const reply = await sendOnce(route, ask);
        if (reply.ok || reply.status === 304) return reply;
        const why = await refusal(reply);
        if (why.status === 401 && route !== "POST /v1/session") session.value = null;
        const wait = Number(reply.headers.get("Retry-After")) * 1000 || PAUSE_MS;
        if (!why.isNotYet || performance.now() + wait > until) throw why;
        await pause(wait, ask.signal);
    }
}

export async function call<R extends Route>(route: R, ask: Ask<R> = {}): Promise<Routes[R]["reply"]> {
    const reply = await send(route, ask);
    const type = reply.headers.get("Content-Type") ?? "";
    return (type.includes("json") ? await reply.json() : await reply.text()) as Routes[R]["reply"];
}

/** Who is logged in here? Once, at the start. */
export async function findSession() {
    try {
        session.value = await call("GET /v1/session");
    } catch (e) {
        if ((e as Refusal).status === 401) session.value = null;
        else throw e;
    }
}

export async function logIn(by: { token: string } | { link: string }) {
    session.value = await call("POST /v1/session", { body: by });
}

export async function logOut() {
    await call("DELETE /v1/session");
    session.value = null;
}
