// SPDX-License-Identifier: Apache-2.0
// answer.tsx - what the reading lines of a command say now, asked by a button and shown below what is expected of them.
import { useState } from "preact/hooks";
import { Refusal } from "../../api/client";
import { visible } from "../../base/say";
import { Time } from "../../kit/parts";
import type { Reading } from "./readings";
import { w } from "./words";

interface Said {
    line: string;
    lines: string[];
    isRefused: boolean;
}

async function ask(of: Reading): Promise<Said> {
    try {
        return { line: of.line, lines: await of.look(), isRefused: false };
    } catch (e) {
        if (!(e instanceof Refusal)) throw e;
        return { line: of.line, lines: [visible(e.detail)], isRefused: true };
    }
}

const Line = ({ of: s }: { of: Said }) => (
    <div>
        <p class="small mid mono">{s.line}</p>
        <pre class={s.isRefused ? "c-bad" : undefined}>{s.lines.length ? s.lines.join("\n") : w("nothing")}</pre>
    </div>
);

/** title: of the step. */
export function Answer({ of, title }: { of: Reading[]; title: string }) {
    const [said, setSaid] = useState<{ at: string; of: Said[] } | null>(null);
    const [busy, setBusy] = useState(false);
    const missing = [...new Set(of.flatMap((r) => r.missing))];
    const look = async () => {
        setBusy(true);
        try {
            const at = new Date().toISOString();
            setSaid({ at, of: await Promise.all(of.map(ask)) });
        } finally {
            setBusy(false);
        }
    };
    return (
        <div class="sop-now">
            <div class="row wrap">
                <button
                    type="button"
                    class="btn small"
                    aria-label={w("look_of", title)}
                    disabled={busy || missing.length > 0}
                    onClick={() => void look()}
                >
                    {w("look")}
                </button>
                {missing.length > 0 && <span class="small mid">{w("set_first", missing.join(", "))}</span>}
            </div>
            {said && (
                <div class="sop-said" role="status">
                    <p class="small dim">
                        {w("says_now")} · <Time at={said.at} />
                    </p>
                    {said.of.map((s) => (
                        <Line of={s} key={s.line} />
                    ))}
                </div>
            )}
        </div>
    );
}
