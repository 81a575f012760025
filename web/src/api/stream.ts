// SPDX-License-Identifier: Apache-2.0
// stream.ts - reads /v1/changes for as long as somebody wants it: an event stream by fetch, with its last id, a silence
// that counts as a loss, and pauses of 1 2 4 8 15 s between tries. Runs in a worker; knows nothing of pages.
export type Topic = "jobs" | "pipelines" | "services" | "nodes" | "pools" | "events";
export type FromWorker =
    | { what: "link"; link: { state: "connecting" | "live" } | { state: "lost"; since: number; again: number } }
    | { what: "changed"; topic: Topic; ids: string[] }
    | { what: "all" }
    | { what: "over" };

const PAUSES = [1, 2, 4, 8, 15];
const SILENCE_MS = 35_000; // the server says something every 15 s

/** Cuts a text/event-stream into messages. Pure. */
export class Cutter {
    private rest = "";
    id = "";

    take(text: string): { event: string; data: string; id: string }[] {
        const out: { event: string; data: string; id: string }[] = [];
        const parts = (this.rest + text.replaceAll("\r\n", "\n")).split("\n\n");
        this.rest = parts.pop() ?? "";
        for (const part of parts) {
            let event = "message";
            const data: string[] = [];
            for (const line of part.split("\n")) {
                if (line.startsWith("event:")) event = line.slice(6).trim();
                else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
                else if (line.startsWith("id:")) this.id = line.slice(3).trim();
            }
            if (data.length) out.push({ event, data: data.join("\n"), id: this.id });
        }
        return out;
    }
}

export class ChangeStream {
    private control: AbortController | null = null;
    private lastId = "";
    private tries = 0;
    private heardAt = Date.now();
    private wake: (() => void) | null = null;
    private stopped = false;
    state: FromWorker = { what: "link", link: { state: "connecting" } };

    constructor(private readonly tell: (m: FromWorker) => void) {}

    private say(m: FromWorker) {
        if (m.what === "link") this.state = m;
        this.tell(m);
    }

    retry() {
        this.tries = 0;
        this.wake?.();
    }

    stop() {
        this.stopped = true;
        this.control?.abort();
        this.wake?.();
    }

    async run() {
        while (!this.stopped) {
            const ended = await this.once();
            if (ended === "over" || this.stopped) return;
            const pause = PAUSES[Math.min(this.tries++, PAUSES.length - 1)]!;
            this.say({ what: "link", link: { state: "lost", since: this.heardAt, again: Date.now() + pause * 1000 } });
            await new Promise<void>((done) => {
                const timer = setTimeout(done, pause * 1000);
                this.wake = () => {
                    clearTimeout(timer);
                    done();
                };
            });
        }
    }

    private live(isNew: boolean) {
        this.tries = 0;
        this.say({ what: "link", link: { state: "live" } });
        if (isNew) this.say({ what: "all" });
    }

    private take(m: { event: string; data: string; id: string }) {
        const data = JSON.parse(m.data) as { ids?: string[]; reset?: boolean };
        const isFirst = this.lastId === "";
        this.lastId = m.id;
        if (m.event === "hello") this.live(isFirst || !!data.reset);
        else if (data.ids) this.say({ what: "changed", topic: m.event as Topic, ids: data.ids });
    }

    /** One connection to its end: "over" when the session has ended. */
    private async once(): Promise<"over" | "lost"> {
        const control = (this.control = new AbortController());
        let silence = 0;
        const hush = () => {
            clearTimeout(silence);
            silence = setTimeout(() => control.abort(), SILENCE_MS) as unknown as number;
        };
        try {
            hush();
            const headers: Record<string, string> = { Accept: "text/event-stream" };
            if (this.lastId) headers["Last-Event-ID"] = this.lastId;
            const reply = await fetch("/v1/changes?follow=1", {
                headers,
                signal: control.signal,
                credentials: "same-origin",
            });
            if (reply.status === 401) {
                this.say({ what: "over" });
                return "over";
            }
            if (!reply.ok || !reply.body) return "lost";
            const cutter = new Cutter();
            const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
            for (;;) {
                const { done, value } = await reader.read();
                if (done) return "lost";
                hush();
                this.heardAt = Date.now();
                for (const m of cutter.take(value)) this.take(m);
            }
        } catch {
            return "lost";
        } finally {
            clearTimeout(silence);
        }
    }
}
