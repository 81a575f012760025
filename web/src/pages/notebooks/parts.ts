// SPDX-License-Identifier: Apache-2.0
// parts.ts - what the page of notebooks, its drawer and its dialogs share: which one is meant, command lines.
import type { NotebookItem } from "../../made/api";
import { session } from "../../api/client";
import { shell } from "../../kit/parts";

type Named = Pick<NotebookItem, "name" | "owner">;

/** Names are an owner's: two people may each have a "main". */
export const keyOf = (n: Named) => `${n.owner}/${n.name}`;
export const isMine = (n: Named) => n.owner === session.value?.user;

/** What a request about it says. */
export const whose = (n: Named) => ({ path: { name: n.name }, query: { user: isMine(n) ? undefined : n.owner } });
export const line = (verb: string, n: Named, more = "") =>
    `argus notebook ${verb} ${shell(n.name)}${more}${isMine(n) ? "" : ` --user ${shell(n.owner)}`}`;

/** The phases of a start in their order; argusd says in which one it is. */
export const PHASES = ["queued", "placed", "environment", "server", "ready"] as const;

/** Its job has ended, or there was none: it can be started, and forgotten. */
export const isOver = (n: Pick<NotebookItem, "state">) => n.state === "STOPPED" || n.state === "FAILED";
