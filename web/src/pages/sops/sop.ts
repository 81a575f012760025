// SPDX-License-Identifier: Apache-2.0
// sop.ts - a page of docs/sop as values: its sections, the values that the operator sets, its steps, and each command
// with the answer that is expected of it. Pure.
//
// Read is what those pages are written in: headings, paragraphs, lists, tables, fenced commands, `export` lines that are
// indented by four spaces, and in a text **strong**, `code` and [links](of.md). Whatever else stands there is a
// paragraph: nothing of a page is lost, and nothing of it is ever read as markup.

export interface Piece {
    kind: "text" | "code" | "strong" | "link";
    text: string;
    /** Where a link leads, as the page has it. */
    to?: string;
}
export interface Value {
    name: string;
    /** As a shell reads it: "$HOME/.ssh/argus". */
    value: string;
    says: string;
}
export type Block =
    | { kind: "text"; of: Piece[] }
    | { kind: "list"; items: Piece[][] }
    | { kind: "table"; head: Piece[][]; rows: Piece[][][] }
    | { kind: "values"; of: Value[] }
    | { kind: "command"; text: string };

/** A command, and what is to be seen after it. */
export interface Deed {
    command: string;
    expected: Block[];
}
export interface Step {
    title: string;
    /** What is said before its first command. */
    lead: Block[];
    deeds: Deed[];
}
export interface Section {
    title: string;
    /** Its heading, as links name it. */
    id: string;
    lead: Block[];
    steps: Step[];
    /** Commands outside of any step. */
    deeds: Deed[];
}
export interface Sop {
    title: string;
    sections: Section[];
}

const PIECE = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)\s]+)\)/g;

export function piecesOf(text: string): Piece[] {
    const out: Piece[] = [];
    let from = 0;
    for (const m of text.matchAll(PIECE)) {
        if (m.index > from) out.push({ kind: "text", text: text.slice(from, m.index) });
        if (m[1] !== undefined) out.push({ kind: "code", text: m[1] });
        else if (m[2] !== undefined) out.push({ kind: "strong", text: m[2] });
        else out.push({ kind: "link", text: m[3]!, to: m[4]! });
        from = m.index + m[0].length;
    }
    if (from < text.length) out.push({ kind: "text", text: text.slice(from) });
    return out;
}

/** The anchor of a heading, as links of the pages name it. */
export const anchorOf = (heading: string) =>
    heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} -]/gu, "")
        .trim()
        .replaceAll(" ", "-");

const EXPORT = /^ {4}export (\w+)=("[^"]*"|'[^']*'|\S+)\s*(?:#\s*(.*))?$/;
const CELLS = /^\|(.*)\|\s*$/;

/** Cells of a row; a `|` in code is no end of one. */
const cellsOf = (row: string) =>
    [...row.matchAll(/((?:`[^`]*`|[^|`])*)(?:\||$)/g)]
        .map((m) => m[1]!.trim())
        .slice(0, -1)
        .map(piecesOf);

/** Consecutive lines from `at` on that are of that kind. */
function runOf(lines: string[], at: number, is: (line: string) => boolean): string[] {
    let end = at;
    while (end < lines.length && is(lines[end]!)) end++;
    return lines.slice(at, end);
}

const isTable = (line: string) => CELLS.test(line);
const isIndented = (line: string) => /^ {4}\S/.test(line);
const isItem = (line: string) => /^- /.test(line) || /^ {2}\S/.test(line);
const isPlain = (line: string) => line.trim() !== "" && !/^(#{1,3} |```|\||- | {4}\S)/.test(line);

const WIDE_LAST = /[\u2e80-\uffef]$/;
const WIDE_FIRST = /^[\u2e80-\uffef]/;
/** Lines of one paragraph as one; between two Chinese signs no space is written. */
const joined = (lines: string[]) =>
    lines.map((l) => l.trim()).reduce((a, b) => (WIDE_LAST.test(a) && WIDE_FIRST.test(b) ? a + b : `${a} ${b}`));

function itemsOf(lines: string[]): Piece[][] {
    const items: string[][] = [];
    for (const line of lines)
        if (line.startsWith("- ") || !items.length) items.push([line.replace(/^- /, "")]);
        else items.at(-1)!.push(line);
    return items.map((of) => piecesOf(joined(of)));
}

function indentedOf(lines: string[]): Block {
    const found = lines.map((l) => EXPORT.exec(l));
    if (found.every((m) => m !== null))
        return { kind: "values", of: found.map((m) => ({ name: m[1]!, value: m[2]!, says: m[3] ?? "" })) };
    return { kind: "command", text: lines.map((l) => l.slice(4)).join("\n") };
}

function tableOf(lines: string[]): Block {
    const rows = lines.filter((l) => !/^\|[\s|:-]+\|\s*$/.test(l)).map((l) => cellsOf(CELLS.exec(l)![1]! + "|"));
    return { kind: "table", head: rows[0] ?? [], rows: rows.slice(1) };
}

type Read = { of: Block | { kind: "head"; level: number; text: string }; lines: number };

function blockAt(lines: string[], at: number): Read {
    const line = lines[at]!;
    const head = /^(#{1,3}) (.*)$/.exec(line);
    if (head) return { of: { kind: "head", level: head[1]!.length, text: head[2]!.trim() }, lines: 1 };
    if (line.startsWith("```")) {
        const of = runOf(lines, at + 1, (l) => !l.startsWith("```"));
        return { of: { kind: "command", text: of.join("\n") }, lines: of.length + 2 };
    }
    const as = (is: (line: string) => boolean, make: (of: string[]) => Block): Read => {
        const of = runOf(lines, at, is);
        return { of: make(of), lines: of.length };
    };
    if (isTable(line)) return as(isTable, tableOf);
    if (isIndented(line)) return as(isIndented, indentedOf);
    if (line.startsWith("- ")) return as(isItem, (of) => ({ kind: "list", items: itemsOf(of) }));
    const of = runOf(lines, at + 1, isPlain);
    return { of: { kind: "text", of: piecesOf(joined([line, ...of])) }, lines: of.length + 1 };
}

const STEP = /^\d+\. /;

/** A paragraph that begins with a strong "3. …" begins a step; "**3. Wait**, it may…" says the rest beside it. */
function stepOf(block: Block): Step | null {
    const [first, ...rest] = block.kind === "text" ? block.of : [];
    if (first?.kind !== "strong" || !STEP.test(first.text)) return null;
    const said = rest
        .map((x, i) => (i ? x : { ...x, text: x.text.replace(/^[,，\s]+/, "") }))
        .filter((x) => x.text !== "");
    return { title: first.text, lead: said.length ? [{ kind: "text", of: said }] : [], deeds: [] };
}

function put(section: Section, block: Block) {
    const step = stepOf(block);
    if (step) return void section.steps.push(step);
    const into = section.steps.at(-1) ?? section;
    if (block.kind === "command") into.deeds.push({ command: block.text, expected: [] });
    else (into.deeds.at(-1)?.expected ?? into.lead).push(block);
}

export function sopOf(text: string): Sop {
    const lines = text.split("\n");
    const section = (title: string): Section => ({ title, id: anchorOf(title), lead: [], steps: [], deeds: [] });
    const sop: Sop = { title: "", sections: [section("")] };
    for (let at = 0; at < lines.length;) {
        if (!lines[at]!.trim()) {
            at++;
            continue;
        }
        const { of, lines: n } = blockAt(lines, at);
        at += n;
        if (of.kind !== "head") put(sop.sections.at(-1)!, of);
        else if (of.level === 1) sop.title = of.text;
        else sop.sections.push(section(of.text));
    }
    return sop;
}

/** All of its commands, in their order. */
export const commandsOf = (sop: Sop): string[] =>
    sop.sections.flatMap((s) => [...s.deeds, ...s.steps.flatMap((x) => x.deeds)].map((d) => d.command));
