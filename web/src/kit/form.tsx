// SPDX-License-Identifier: Apache-2.0
// form.tsx - the fields of a dialog: each has a label, and a signal that holds what is in it.
import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";

interface Labelled {
    label: string;
    /** The key of a form or option that it fills. */
    code?: string;
    /** Of twelve columns: 3, 4, 6, 8, 12. */
    wide?: 3 | 4 | 6 | 8 | 12;
    help?: ComponentChildren;
}

function Label(p: Labelled & { children: ComponentChildren }) {
    return (
        <label class={p.wide && p.wide !== 6 ? `w${p.wide}` : undefined}>
            <span>
                {p.label}
                {p.code && <code>{p.code}</code>}
            </span>
            {p.children}
            {p.help && <span class="help">{p.help}</span>}
        </label>
    );
}

export function Field(
    p: Labelled & {
        of: Signal<string>;
        kind?: "text" | "number" | "password";
        placeholder?: string;
        least?: number;
        list?: string[];
        first?: boolean;
    },
) {
    const id = p.list ? `list-${p.code ?? p.label}`.replaceAll(/\W/g, "-") : undefined;
    return (
        <Label {...p}>
            <input
                class="field"
                autocomplete="off"
                min={p.least}
                placeholder={p.placeholder}
                value={p.of.value}
                {...({ type: p.kind ?? "text", list: id } as { type: "text" })}
                data-first={p.first}
                onInput={(e) => (p.of.value = e.currentTarget.value)}
            />
            {p.list && (
                <datalist id={id}>
                    {p.list.map((v) => (
                        <option value={v} />
                    ))}
                </datalist>
            )}
        </Label>
    );
}

export function Choose<T extends string>(
    p: Labelled & { of: Signal<T>; choices: readonly { value: T; says: string }[] },
) {
    return (
        <Label {...p}>
            <select class="field" value={p.of.value} onChange={(e) => (p.of.value = e.currentTarget.value as T)}>
                {p.choices.map((c) => (
                    <option value={c.value} selected={c.value === p.of.value}>
                        {c.says}
                    </option>
                ))}
            </select>
        </Label>
    );
}

export const Tick = (p: { label: ComponentChildren; of: Signal<boolean> }) => (
    <label class="row tick">
        <input
            type="checkbox"
            class="check"
            checked={p.of.value}
            onChange={(e) => (p.of.value = e.currentTarget.checked)}
        />
        {p.label}
    </label>
);
