// SPDX-License-Identifier: Apache-2.0
// say.ts - times, spans, numbers and sizes as people read them, in one form everywhere.
import { signal } from "@preact/signals";
import { lang } from "./prefs";

/** The present, for what says "3m ago": moves each 15 s. Tests and pictures may hold it. */
export const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 15_000);

const two = (n: number) => String(n).padStart(2, "0");
export const NOTHING = "–";

/** "3h 12m", "3小时12分" */
export function span(millis: number): string {
    const zh = lang.value === "zh";
    const s = Math.max(0, Math.round(millis / 1000));
    if (s < 60) return zh ? `${s}秒` : `${s}s`;
    const m = Math.floor(s / 60);
    const h = Math.floor(m / 60);
    const d = Math.floor(h / 24);
    if (d >= 2) return zh ? `${d}天${h % 24}小时` : `${d}d ${h % 24}h`;
    if (h) return zh ? `${h}小时${m % 60}分` : `${h}h ${m % 60}m`;
    return zh ? `${m}分钟` : `${m}m`;
}

/** argusd says spans in seconds: "90s". null: there is none. */
export const spanSays = (text: string | null | undefined): string | null => {
    const s = Number.parseInt(text ?? "", 10);
    return s > 0 ? span(s * 1000) : null;
};

/** Whole seconds, for a table that is copied. */
export const wholeSeconds = (millis: number | null) => (millis === null ? null : Math.round(millis / 1000));

export const ms = (at: string | null | undefined) => (at ? Date.parse(at) : NaN);
export const ago = (at: string) =>
    lang.value === "zh" ? `${span(now.value - ms(at))}前` : `${span(now.value - ms(at))} ago`;
export const until = (at: string) =>
    lang.value === "zh" ? `${span(ms(at) - now.value)}后` : `in ${span(ms(at) - now.value)}`;

/** "14:05" today, "11-23 14:05" else, in the zone of who looks. */
export function clock(at: string | number): string {
    const d = new Date(at);
    const hm = `${two(d.getHours())}:${two(d.getMinutes())}`;
    const today = d.toDateString() === new Date(now.value).toDateString();
    return today ? hm : `${two(d.getMonth() + 1)}-${two(d.getDate())} ${hm}`;
}
export function fullTime(at: string | number): string {
    const d = new Date(at);
    const date = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
    return `${date} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

export const num = (v: number, digits = 0) =>
    v.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** How many parameters a model has: "7.6B", "72B", "494M", "3,200". */
export function parameters(n: number): string {
    if (n < 1e6) return num(n);
    const of = n < 999.5e6 ? 1e6 : 1e9;
    return `${num(n / of, n / of < 9.95 ? 1 : 0)}${of === 1e9 ? "B" : "M"}`;
}

/** A metric's value: four figures that count, never "0.0000". */
export function figure(v: number | null | undefined): string {
    if (v === null || v === undefined || !Number.isFinite(v)) return NOTHING;
    const a = Math.abs(v);
    if (a !== 0 && (a < 1e-3 || a >= 1e6)) return v.toExponential(2);
    if (a >= 1000) return num(v);
    return String(Number(v.toPrecision(3)));
}

/** GPU-hours: a little is not nothing. */
export const gpuHours = (h: number) => (h > 0 && h < 0.01 ? "< 0.01" : figure(h));

export function bytes(b: number): string {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let i = 0;
    while (b >= 1024 && i < units.length - 1) {
        b /= 1024;
        i++;
    }
    return `${i && b < 10 ? b.toFixed(1) : num(b)} ${units[i]}`;
}

/** GPUs of a gang: "2 × 8". Half a GPU is half a GPU. */
export const shape = (j: { nnodes: number; n_gpus_per_node: number }) => `${j.nnodes} × ${j.n_gpus_per_node}`;

/** A text of a job, a user or a node: control characters and marks that turn the direction of writing are made
 * visible, so that a name cannot pretend to be another one. Markup needs nothing: it is never read as such. */
export const visible = (text: string) =>
    // oxlint-disable-next-line no-control-regex
    text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, (c) =>
        c < " " ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : "\ufffd",
    );
