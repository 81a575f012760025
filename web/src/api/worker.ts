// SPDX-License-Identifier: Apache-2.0
// worker.ts - holds the one stream of changes for all tabs that are connected to it, and ends with the last of them.
import { ChangeStream, type FromWorker } from "./stream";

type Client = { postMessage: (m: FromWorker) => void };
const clients = new Set<Client>();
let stream: ChangeStream | null = null;

function tell(m: FromWorker) {
    for (const c of clients) c.postMessage(m);
}

function join(c: Client) {
    clients.add(c);
    if (!stream) {
        stream = new ChangeStream(tell);
        void stream.run();
    } else c.postMessage(stream.state);
}

function hear(c: Client, m: { what: string }) {
    if (m.what === "retry") stream?.retry();
    if (m.what !== "bye") return;
    clients.delete(c);
    if (clients.size) return;
    stream?.stop();
    stream = null;
}

if ("SharedWorkerGlobalScope" in globalThis) {
    addEventListener("connect", (e) => {
        const port = (e as MessageEvent).ports[0]!;
        port.onmessage = (m: MessageEvent<{ what: string }>) => hear(port, m.data);
        port.start();
        join(port);
    });
} else {
    const own: Client = { postMessage: (m) => postMessage(m) };
    addEventListener("message", (m) => hear(own, (m as MessageEvent<{ what: string }>).data));
    join(own);
}
