// SPDX-License-Identifier: Apache-2.0
// parts.tsx - the small parts that every page is made of: states, flags, panels, times, command lines, copies.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { csv, type Cell } from "../base/csv";
import { addKeys } from "../base/keys";
import { ago, clock, fullTime, NOTHING, until, visible } from "../base/say";
import { t } from "../words/shared";
import { Icon, type IconName } from "./icons";
import { useEffect } from "preact/hooks";

export type Tone = "quiet" | "run" | "ok" | "bad" | "slow" | "warn" | "lost" | "foreign";
const STATES: Record<string, [IconName, Tone]> = {
    QUEUED: ["queued", "quiet"],
    STARTING: ["starting", "run"],
    RUNNING: ["running", "run"],
    STOPPING: ["stopping", "quiet"],
    SUCCEEDED: ["succeeded", "ok"],
    FAILED: ["failed", "bad"],
    STOPPED: ["stopped", "quiet"],
    TIMEOUT: ["timeout", "slow"],
    WAITING: ["queued", "quiet"],
    SKIPPED: ["skipped", "quiet"],
    CANCELLED: ["stopped", "quiet"],
    // of services, their versions and replicas
    READY: ["online", "ok"],
    DEGRADED: ["unhealthy", "warn"],
    LOADING: ["starting", "run"],
    CHECKING: ["starting", "run"],
    NEW: ["pending", "quiet"],
    COLD: ["idle", "quiet"],
    SLEEPING: ["idle", "quiet"],
    LEAVING: ["draining", "warn"],
    online: ["online", "ok"],
    pending: ["pending", "run"],
    draining: ["draining", "warn"],
    offline: ["offline", "quiet"],
    unhealthy: ["unhealthy", "bad"],
};
const FLAGS: Record<string, [IconName, Tone]> = {
    HUNG: ["hung", "slow"],
    IDLE: ["idle", "warn"],
    UNKNOWN: ["unknown", "lost"],
    HELD: ["held", "quiet"],
    HOLDING: ["held", "quiet"],
    RESTARTING: ["restarting", "run"],
};
type Word = Parameters<typeof t>[0];

/** A shape in the colour of its tone, and the words beside it: State for things that have words of their own. */
export const Toned = (p: {
    tone: Tone;
    icon: IconName;
    class?: string;
    title?: string;
    children: ComponentChildren;
}) => (
    <span class={`st c-${p.tone}${p.class ? ` ${p.class}` : ""}`} title={p.title}>
        <Icon name={p.icon} />
        {p.children}
    </span>
);

/** A state is a shape, a colour and a word, never one of the three alone. */
export function State({ of, wordless }: { of: string; wordless?: boolean }) {
    const [icon, tone] = STATES[of] ?? ["unknown", "lost"];
    const word = of in STATES ? t(of as Word) : visible(of);
    return (
        <Toned
            tone={tone}
            icon={icon}
            class={of === "STARTING" ? "turn" : undefined}
            title={wordless ? word : undefined}
        >
            {wordless ? <span class="sr">{word}</span> : word}
        </Toned>
    );
}
export const toneOf = (state: string): Tone => STATES[state]?.[1] ?? "lost";

export function Flag({ of, more }: { of: string; more?: string }) {
    const [icon, tone] = FLAGS[of] ?? ["flag", "quiet"];
    return (
        <span class={`flag ${tone}`}>
            <Icon name={icon} />
            {of in FLAGS ? t(of as Word) : visible(of)}
            {more && ` ${more}`}
        </span>
    );
}

/** A text that a person, a job or a node made: shown as text, in its own direction. */
export const Text = ({ of, mono }: { of: string | null | undefined; mono?: boolean }) => (
    <bdi class={mono ? "mono" : undefined}>{of ? visible(of) : NOTHING}</bdi>
);

export const Dash = () => <span class="dim">{NOTHING}</span>;

export function Time({ at, as = "clock" }: { at: string | null | undefined; as?: "clock" | "ago" | "until" }) {
    if (!at) return <Dash />;
    const said = as === "ago" ? ago(at) : as === "until" ? until(at) : clock(at);
    return (
        <time dateTime={at} title={fullTime(at)}>
            {said}
        </time>
    );
}

export const Meter = ({ part, tone }: { part: number; tone?: "ok" | "quiet" | "bad" | "slow" }) => (
    <span class={`meter ${tone ?? ""}`}>
        <i style={{ width: `${Math.max(0, Math.min(1, part)) * 100}%` }} />
    </span>
);

export function Panel(props: {
    title?: ComponentChildren;
    count?: ComponentChildren;
    end?: ComponentChildren;
    id?: string;
    class?: string;
    bare?: boolean;
    children: ComponentChildren;
}) {
    return (
        <section class={`panel ${props.class ?? ""}`} id={props.id}>
            {(props.title || props.end) && (
                <header class="wrap">
                    {props.title && <h2>{props.title}</h2>}
                    {props.count !== undefined && <span class="dim">{props.count}</span>}
                    {props.end && <span class="end">{props.end}</span>}
                </header>
            )}
            {props.bare ? props.children : <div class="body">{props.children}</div>}
        </section>
    );
}

export function Head(props: {
    title: ComponentChildren;
    sub?: ComponentChildren;
    cli?: string;
    children?: ComponentChildren;
}) {
    return (
        <div class="head">
            <h1>{props.title}</h1>
            {props.sub && <span class="sub">{props.sub}</span>}
            <div class="acts">
                {props.cli && <Cli line={props.cli} isPage />}
                {props.children}
            </div>
        </div>
    );
}

// ---- what is said for a moment ----

const toastText = signal("");
let toastTimer = 0;
export function toast(text: string) {
    toastText.value = text;
    clearTimeout(toastTimer);
    toastTimer = setTimeout(() => (toastText.value = ""), 3000) as unknown as number;
}
export const Toasts = () => (
    <div class="toasts" role="status">
        {toastText.value && <div class="toast">{toastText.value}</div>}
    </div>
);

// ---- copies ----

export async function copy(text: string) {
    try {
        await navigator.clipboard.writeText(text);
    } catch {
        // Over plain HTTP a browser has no clipboard but this.
        const area = document.createElement("textarea");
        area.value = text;
        area.className = "sr";
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
    }
    toast(t("copied"));
}

/** A word of a command line, quoted for a shell where it must be. */
export const shell = (word: string) => (/^[\w@%+=:,./~-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** The command line that does or shows the same. `isPage`: key `c` copies it. */
export function Cli({ line, isPage }: { line: string; isPage?: boolean }) {
    useEffect(
        () => (isPage ? addKeys([{ keys: "c", says: () => t("k_copy"), does: () => void copy(line) }]) : undefined),
        [line, isPage],
    );
    return (
        <button type="button" class="cli wide" title={t("copy_cli")} onClick={() => void copy(line)}>
            <span>{visible(line)}</span>
            <Icon name="copy" />
        </button>
    );
}

/** The data of a picture or a list, which may have to be asked for. */
export const CopyCsv = ({ head, rows }: { head: string[]; rows: () => Cell[][] | Promise<Cell[][]> }) => (
    <button
        type="button"
        class="btn icon act"
        title={t("csv")}
        aria-label={t("csv")}
        onClick={async () => copy(csv(head, await rows()))}
    >
        <Icon name="download" />
    </button>
);

/** Choices of which one holds: links, so that each is an address. */
export function Seg<T extends string>(props: {
    value: T;
    of: readonly { value: T; says: ComponentChildren }[];
    onChange: (value: T) => void;
    label: string;
}) {
    return (
        <div class="seg" role="group" aria-label={props.label}>
            {props.of.map((o) => (
                <button type="button" aria-pressed={o.value === props.value} onClick={() => props.onChange(o.value)}>
                    {o.says}
                </button>
            ))}
        </div>
    );
}
