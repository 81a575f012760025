// SPDX-License-Identifier: Apache-2.0
// follow.ts - a log as it grows: an event stream that goes on at the byte after the last one whenever it was lost.
//
// A browser has six connections to a server for all of its tabs: one that nobody looks at gives its stream back, and
// takes up the log where it left it when it is looked at again.
const AGAIN = 2000;

export interface Followed {
    /** Of the stream that begins at a byte. */
    url: (offset: number) => string;
    attempt: number;
    from: number;
    hear: (bytes: Uint8Array, at: number) => void;
    /** Another file stands in the log's place, from this byte on. */
    replaced: (at: number) => void;
}

/** Ends by itself with the log's end, or when the returned function is called. */
export function followLog(p: Followed): () => void {
    let next = p.from;
    let stream: EventSource | null = null;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const close = () => {
        stream?.close();
        stream = null;
        clearTimeout(timer);
    };
    const hear = (e: MessageEvent<string>) => {
        const m = JSON.parse(e.data) as { attempt: number; offset: number; b64: string };
        if (m.attempt !== p.attempt || !m.b64) return;
        const bytes = Uint8Array.from(atob(m.b64), (c) => c.charCodeAt(0));
        next = m.offset + bytes.length;
        p.hear(bytes, m.offset);
    };
    const open = () => {
        close();
        stream = new EventSource(p.url(next));
        stream.addEventListener("log", hear);
        stream.onmessage = hear;
        stream.addEventListener("replaced", (e: MessageEvent<string>) => {
            next = (JSON.parse(e.data) as { offset: number }).offset;
            p.replaced(next);
        });
        stream.addEventListener("end", stop);
        // A stream that was refused opens itself no more, and one that was cut would begin where it began.
        stream.onerror = () => {
            close();
            timer = setTimeout(look, AGAIN);
        };
    };
    const look = () => (document.hidden ? close() : stream || open());
    const stop = () => {
        close();
        document.removeEventListener("visibilitychange", look);
    };
    document.addEventListener("visibilitychange", look);
    look();
    return stop;
}
