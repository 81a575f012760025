// SPDX-License-Identifier: Apache-2.0
// asks.tsx - a form in a dialog: fields, what is refused, the command line that does the same.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Refusal } from "../api/client";
import { visible } from "../base/say";
import { Modal } from "../kit/over";
import { Cli, toast } from "../kit/parts";
import { t } from "../words/shared";
import "./library.css";

export function Asks(p: {
    title: string;
    act: string;
    cli: string;
    text?: string;
    off?: boolean;
    done?: string;
    close: () => void;
    does: () => Promise<unknown>;
    children: ComponentChildren;
}) {
    const [why, setWhy] = useState<string>("");
    const [busy, setBusy] = useState(false);
    const go = async (e: Event) => {
        e.preventDefault();
        setBusy(true);
        try {
            await p.does();
            if (p.done) toast(p.done);
            p.close();
        } catch (err) {
            setWhy(err instanceof Refusal ? [err.detail, err.hint].filter(Boolean).join("; ") : String(err));
        }
        setBusy(false);
    };
    return (
        <Modal label={p.title} onClose={p.close}>
            <form onSubmit={(e) => void go(e)}>
                <header>
                    <h1>{p.title}</h1>
                </header>
                <div class="body lib-asks">
                    {p.text && <p>{p.text}</p>}
                    {p.children}
                    {why && (
                        <p class="note bad said" role="alert">
                            <span>{visible(why)}</span>
                        </p>
                    )}
                </div>
                <footer>
                    <Cli line={p.cli} />
                    <span class="grow" />
                    <button type="button" class="btn" onClick={p.close}>
                        {t("cancel")}
                    </button>
                    <button type="submit" class="btn main" disabled={busy || p.off}>
                        {p.act}
                    </button>
                </footer>
            </form>
        </Modal>
    );
}

export function Text1(p: {
    says: string;
    value: string;
    set: (v: string) => void;
    hint?: string;
    first?: boolean;
    needed?: boolean;
    choices?: string[];
}) {
    const id = `ask-${p.says.replace(/\W/g, "")}`;
    return (
        <label>
            {p.says}
            <input
                class="field"
                value={p.value}
                required={p.needed}
                autocomplete="off"
                spellcheck={false}
                data-first={p.first || undefined}
                list={p.choices ? id : undefined}
                onInput={(e) => p.set(e.currentTarget.value)}
            />
            {p.choices && (
                <datalist id={id}>
                    {p.choices.map((c) => (
                        <option value={c} />
                    ))}
                </datalist>
            )}
            {p.hint && <span class="dim">{p.hint}</span>}
        </label>
    );
}

export const Tick = (p: { says: string; on: boolean; set: (on: boolean) => void }) => (
    <label class="tick">
        <input type="checkbox" class="check" checked={p.on} onChange={(e) => p.set(e.currentTarget.checked)} />
        {p.says}
    </label>
);
