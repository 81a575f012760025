// SPDX-License-Identifier: Apache-2.0
// over.tsx - what lies over a page: the drawer beside it, and the dialog that names what it destroys.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { addKeys } from "../base/keys";
import { visible } from "../base/say";
import { t } from "../words/shared";
import { Refusal } from "../api/client";
import { Icon } from "./icons";
import { Cli, toast } from "./parts";

export const drawerOpen = signal(false);

export function Drawer(p: {
    label: string;
    onClose: () => void;
    head: ComponentChildren;
    foot?: ComponentChildren;
    children: ComponentChildren;
}) {
    useEffect(() => {
        drawerOpen.value = true;
        const off = addKeys([{ keys: "Escape", says: () => t("k_esc"), does: p.onClose, inFields: true }]);
        return () => {
            drawerOpen.value = false;
            off();
        };
    }, []);
    return (
        <aside class="drawer" aria-label={p.label}>
            <header>
                <button type="button" class="btn bare icon drawer-close" aria-label={t("close")} onClick={p.onClose}>
                    <Icon name="close" />
                </button>
                {p.head}
            </header>
            {p.children}
            {p.foot && <footer>{p.foot}</footer>}
        </aside>
    );
}

export interface Deed {
    title: string;
    /** What is lost, to whom, and how it comes back. */
    body: ComponentChildren;
    /** Verb and object: "Stop the job", never "OK". */
    act: string | (() => string);
    /** A function where the line follows what the body's fields say. */
    cli?: string | (() => string);
    /** What is still missing, said beside the button that cannot act yet; "": it can. */
    missing?: () => string;
    isBad?: boolean;
    does: () => Promise<unknown>;
    done?: string | (() => string);
    /** What came of it is told in the body: it stays until it is closed. */
    stays?: boolean;
}
const asked = signal<Deed | null>(null);
/** Asks before something is done that cannot be taken back. */
export const ask = (deed: Deed) => (asked.value = deed);

/** A box over everything: the focus stays in it and goes back to where it was. */
export function Modal(p: { label: string; onClose: () => void; children: ComponentChildren; class?: string }) {
    const box = useRef<HTMLDivElement>(null);
    useEffect(() => {
        const before = document.activeElement as HTMLElement | null;
        const first =
            box.current?.querySelector<HTMLElement>("[data-first]") ??
            box.current?.querySelector<HTMLElement>("button, input");
        first?.focus();
        const off = addKeys([{ keys: "Escape", says: () => t("k_esc"), does: p.onClose, inFields: true }]);
        return () => {
            off();
            before?.focus();
        };
    }, []);
    const hold = (e: KeyboardEvent) => {
        if (e.key !== "Tab") return;
        const all = [
            ...box.current!.querySelectorAll<HTMLElement>("button:not([disabled]), input, select, textarea, a[href]"),
        ];
        const last = e.shiftKey ? all[0] : all.at(-1);
        if (document.activeElement !== last) return;
        e.preventDefault();
        (e.shiftKey ? all.at(-1) : all[0])?.focus();
    };
    return (
        <div class="scrim" onClick={(e) => e.target === e.currentTarget && p.onClose()}>
            <div
                class={`dialog ${p.class ?? ""}`}
                role="dialog"
                aria-modal="true"
                aria-label={p.label}
                ref={box}
                onKeyDown={hold}
            >
                {p.children}
            </div>
        </div>
    );
}

export function Asked() {
    const deed = asked.value;
    const [busy, setBusy] = useState(false);
    const [why, setWhy] = useState("");
    const [over, setOver] = useState(false);
    useEffect(() => {
        setWhy("");
        setOver(false);
    }, [deed]);
    if (!deed) return null;
    const close = () => (asked.value = null);
    const missing = deed.missing?.() ?? "";
    const act = async () => {
        setBusy(true);
        try {
            await deed.does();
            if (deed.stays) setOver(true);
            else close();
            if (deed.done) toast(typeof deed.done === "string" ? deed.done : deed.done());
        } catch (e) {
            setWhy(e instanceof Refusal ? e.detail : String(e));
        }
        setBusy(false);
    };
    return (
        <Modal label={deed.title} onClose={close}>
            <header role="none">
                <h1>{deed.title}</h1>
            </header>
            <div class="body">
                {deed.body}
                {missing && !over && <p class="small dim missing">{missing}</p>}
                {why && (
                    <p class="note bad said" role="alert">
                        <Icon name="failed" />
                        <span>{visible(why)}</span>
                    </p>
                )}
            </div>
            <footer role="none">
                {deed.cli && <Cli line={typeof deed.cli === "string" ? deed.cli : deed.cli()} />}
                <span class="grow" />
                <button type="button" class="btn" data-first onClick={close}>
                    {over ? t("close") : t("cancel")}
                </button>
                {!over && (
                    <button
                        type="button"
                        class={`btn main ${deed.isBad ? "bad" : ""}`}
                        disabled={busy || !!missing}
                        onClick={() => void act()}
                    >
                        {typeof deed.act === "string" ? deed.act : deed.act()}
                    </button>
                )}
            </footer>
        </Modal>
    );
}
