// SPDX-License-Identifier: Apache-2.0
// editor.ts - the side of yaml.tsx that knows CodeMirror; loaded when the first editor is seen.
//
// It lives in a shadow root: there its styles are sheets made by script, which the policy of the page allows, while a
// <style> in the document is refused. The tokens of the page reach into it.
import {
    acceptCompletion,
    autocompletion,
    closeBrackets,
    completionKeymap,
    type CompletionContext,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, bracketMatching, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import {
    EditorView,
    drawSelection,
    highlightActiveLine,
    highlightSpecialChars,
    hoverTooltip,
    keymap,
    lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { keysAt, type KeyDoc } from "./keydoc";

export interface Spot {
    line: number;
    column: number;
    isError: boolean;
    says: string;
}
export interface EditorOptions {
    text: string;
    label: string;
    keys: () => KeyDoc[];
    onChange: (text: string) => void;
}

const colours = HighlightStyle.define([
    { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--run)" },
    { tag: [tags.number, tags.bool, tags.null], color: "var(--ok)" },
    { tag: tags.string, color: "var(--text)" },
    { tag: tags.comment, color: "var(--text-3)" },
    { tag: tags.punctuation, color: "var(--text-2)" },
]);
const look = EditorView.theme({
    "&": { color: "var(--text)", backgroundColor: "var(--surface)", height: "100%", fontSize: "12px" },
    "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "-2px" },
    ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "19px", overflow: "auto" },
    ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
    ".cm-cursor": { borderLeftColor: "var(--text)" },
    ".cm-gutters": {
        backgroundColor: "var(--surface)",
        color: "var(--text-3)",
        borderRight: "1px solid var(--line)",
    },
    ".cm-lineNumbers .cm-gutterElement": { padding: "0 6px 0 10px", minWidth: "30px" },
    ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--hover) 60%, transparent)" },
    ".cm-selectionBackground, &.cm-focused .cm-selectionBackground": {
        backgroundColor: "color-mix(in srgb, var(--focus) 24%, transparent) !important",
    },
    ".cm-tooltip": {
        backgroundColor: "var(--surface)",
        color: "var(--text)",
        border: "1px solid var(--line)",
        borderRadius: "6px",
        boxShadow: "var(--shadow)",
        font: "12px/16px var(--sans)",
        maxWidth: "420px",
    },
    ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "220px" },
    ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": {
        backgroundColor: "var(--selected)",
        color: "var(--text)",
    },
    ".cm-completionInfo": { padding: "8px", maxWidth: "260px", color: "var(--text-2)" },
    ".cm-keydoc": { padding: "6px 8px" },
    ".cm-diagnostic": { padding: "6px 8px", borderLeft: "3px solid var(--bad-fill)" },
    ".cm-diagnostic-warning": { borderLeftColor: "var(--warn-fill)" },
    ".cm-lint-marker": { width: "10px", height: "10px" },
});

/** The keys that may stand in this line, by what stands above it. */
function keysOfLine(state: EditorState, at: number, keys: KeyDoc[]): KeyDoc[] {
    const line = state.doc.lineAt(at);
    const above = line.number > 1 ? state.doc.sliceString(0, line.from - 1).split("\n") : [];
    return keysAt(keys, above, /^ */.exec(line.text)![0].length) ?? [];
}

function keyAt(state: EditorState, pos: number): string | null {
    const line = state.doc.lineAt(pos);
    const key = /^\s*([\w.]+)\s*:/.exec(line.text);
    return key && pos - line.from <= key[0].length ? key[1]! : null;
}

const completed = (keys: () => KeyDoc[]) => (c: CompletionContext) => {
    const line = c.state.doc.lineAt(c.pos);
    const before = line.text.slice(0, c.pos - line.from);
    const value = /^ *([\w.]+):\s+(\S*)$/.exec(before);
    const here = keysOfLine(c.state, c.pos, keys());
    if (value) {
        const words = here.find((k) => k.key === value[1])?.words;
        return words
            ? { from: c.pos - value[2]!.length, options: words.map((label) => ({ label, type: "enum" })) }
            : null;
    }
    const begun = /^ *([\w.]*)$/.exec(before);
    if (!begun || (!begun[1] && !c.explicit)) return null;
    return {
        from: c.pos - begun[1]!.length,
        options: here.map((k) => ({
            label: k.key,
            type: "property",
            apply: k.of ? `${k.key}:` : `${k.key}: `,
            info: k.says,
        })),
    };
};

const documented = (keys: () => KeyDoc[]) =>
    hoverTooltip((view, pos) => {
        const key = keyAt(view.state, pos);
        const doc = key && keysOfLine(view.state, pos, keys()).find((k) => k.key === key);
        if (!doc || !doc.says) return null;
        return {
            pos: view.state.doc.lineAt(pos).from,
            create: () => {
                const dom = document.createElement("div");
                dom.className = "cm-keydoc";
                dom.textContent = doc.says;
                return { dom };
            },
        };
    });

export function edit(el: HTMLElement, o: EditorOptions) {
    const root = el.shadowRoot ?? el.attachShadow({ mode: "open" });
    root.replaceChildren();
    let quiet = false;
    const view = new EditorView({
        root,
        parent: root,
        state: EditorState.create({
            doc: o.text,
            extensions: [
                lineNumbers(),
                lintGutter(),
                highlightSpecialChars(),
                history(),
                drawSelection(),
                bracketMatching(),
                closeBrackets(),
                highlightActiveLine(),
                indentUnit.of("  "),
                yaml(),
                syntaxHighlighting(colours),
                autocompletion({ override: [completed(o.keys)] }),
                documented(o.keys),
                // Tab indents only while completions are open or a selection is there: else it leaves, as in every field.
                keymap.of([
                    { key: "Tab", run: acceptCompletion },
                    { ...indentWithTab, key: "Ctrl-]" },
                    ...completionKeymap,
                    ...lintKeymap,
                    ...historyKeymap,
                    ...defaultKeymap.filter((k) => k.key !== "Mod-Enter"), // the page's
                ]),
                EditorView.contentAttributes.of({ "aria-label": o.label, tabindex: "0" }),
                EditorView.updateListener.of((u) => {
                    if (u.docChanged && !quiet) o.onChange(u.state.doc.toString());
                }),
                look,
            ],
        }),
    });
    view.dom.style.height = "100%";
    const spotsOf = (spots: Spot[]): Diagnostic[] =>
        spots
            .filter((s) => s.line >= 1 && s.line <= view.state.doc.lines)
            .map((s) => {
                const line = view.state.doc.line(s.line);
                const from = Math.min(line.from + Math.max(0, s.column - 1), line.to);
                return { from, to: line.to, severity: s.isError ? "error" : "warning", message: s.says };
            });
    return {
        /** What another side wrote: the cursor stays where it is. */
        setText: (text: string) => {
            const old = view.state.doc.toString();
            if (old === text) return;
            let from = 0;
            while (from < old.length && from < text.length && old[from] === text[from]) from++;
            let tail = 0;
            while (
                tail < old.length - from &&
                tail < text.length - from &&
                old[old.length - 1 - tail] === text[text.length - 1 - tail]
            )
                tail++;
            quiet = true;
            view.dispatch({
                changes: { from, to: old.length - tail, insert: text.slice(from, text.length - tail) },
            });
            quiet = false;
        },
        setSpots: (spots: Spot[]) => view.dispatch(setDiagnostics(view.state, spotsOf(spots))),
        goTo: (line: number) => {
            if (line < 1 || line > view.state.doc.lines) return;
            const at = view.state.doc.line(line);
            view.dispatch({ selection: { anchor: at.from, head: at.to }, scrollIntoView: true });
            view.focus();
        },
        destroy: () => view.destroy(),
    };
}
export type Editing = ReturnType<typeof edit>;
