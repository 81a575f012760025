// SPDX-License-Identifier: Apache-2.0
// answer.ts - one request to a service as any client makes it, and its answer as it comes: the text of a model word by
// word, or what an application says. What answers is a stranger: everything it says stays a text.
import { session } from "../../api/client";
import { Cutter } from "../../api/stream";
import { lang } from "../../base/prefs";

export interface Answered {
    status: number;
    text: string;
    /** Milliseconds to the first byte, to the first word of a model's stream, to the end; null: not yet. */
    first: number | null;
    word: number | null;
    whole: number | null;
    tokens: number | null;
    /** What went wrong, in a sentence. */
    why: string;
}
export const nothing: Answered = { status: 0, text: "", first: null, word: null, whole: null, tokens: null, why: "" };
const TEXT_MAX = 200_000; // of an answer that is shown

interface Piece {
    choices?: { delta?: { content?: string | null }; text?: string; message?: { content?: string | null } }[];
    usage?: { completion_tokens?: number } | null;
    error?: { message?: string };
}

/** What one event of a model's stream adds. Pure; a piece that is no JSON adds nothing. */
export function added(data: string): { text: string; tokens: number | null; why: string } {
    if (data.trim() === "[DONE]") return { text: "", tokens: null, why: "" };
    try {
        const p = JSON.parse(data) as Piece | null;
        const c = p?.choices?.[0];
        return {
            text: String(c?.delta?.content ?? c?.text ?? c?.message?.content ?? ""),
            tokens: typeof p?.usage?.completion_tokens === "number" ? p.usage.completion_tokens : null,
            why: p?.error?.message ? String(p.error.message) : "",
        };
    } catch {
        return { text: "", tokens: null, why: "" };
    }
}

/** The sentence of a refusal: argusd's, an engine's, or the text as it is. */
export function refusalOf(text: string): string {
    try {
        const p = JSON.parse(text) as { detail?: unknown; error?: { message?: unknown } } | null;
        const said = p?.detail ?? p?.error?.message;
        if (typeof said === "string") return said;
    } catch {
        // it is no JSON: said as it came
    }
    return text.slice(0, 400);
}

/** Tokens a second once the first one was there; null: it said too little to tell. Pure. */
export function speed(a: Pick<Answered, "word" | "whole" | "tokens">): number | null {
    if (a.word === null || a.whole === null || a.tokens === null) return null;
    return a.tokens > 1 && a.whole > a.word ? ((a.tokens - 1) * 1000) / (a.whole - a.word) : null;
}

export interface Question {
    path: string;
    /** That answers; null: the one that has the traffic. */
    version: number | null;
    body: unknown; // undefined: a GET
    signal: AbortSignal;
}

export async function ask(q: Question, tell: (a: Answered) => void): Promise<void> {
    const began = performance.now();
    const since = () => Math.round(performance.now() - began);
    const now: Answered = { ...nothing };
    const headers: Record<string, string> = { "Accept-Language": lang.value === "zh" ? "zh-CN" : "en" };
    if (q.version !== null) headers["Argus-Version"] = String(q.version);
    if (q.body !== undefined) headers["Content-Type"] = "application/json";
    if (q.body !== undefined && session.value) headers["Argus-CSRF"] = session.value.csrf;
    const reply = await fetch(q.path, {
        method: q.body === undefined ? "GET" : "POST",
        headers,
        body: q.body === undefined ? undefined : JSON.stringify(q.body),
        signal: q.signal,
        credentials: "same-origin",
    });
    now.status = reply.status;
    const isStream = reply.ok && (reply.headers.get("Content-Type") ?? "").includes("text/event-stream");
    const cutter = new Cutter();
    const words = new TextDecoder();
    const reader = reply.body?.getReader();
    for (let r = await reader?.read(); r && !r.done; r = await reader?.read()) {
        now.first ??= since();
        const text = words.decode(r.value, { stream: true });
        if (!isStream) now.text += text;
        else
            for (const e of cutter.take(text)) {
                const more = added(e.data);
                if (more.text) now.word ??= since();
                now.text += more.text;
                now.tokens = more.tokens ?? now.tokens;
                now.why = more.why || now.why;
            }
        if (now.text.length > TEXT_MAX) {
            now.text = `${now.text.slice(0, TEXT_MAX)}…`;
            await reader?.cancel();
            break;
        }
        tell({ ...now });
    }
    now.whole = since();
    if (!reply.ok) {
        now.why = refusalOf(now.text);
        now.text = "";
    }
    tell({ ...now });
}
