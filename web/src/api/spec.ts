// SPDX-License-Identifier: Apache-2.0
// spec.ts - the keys of a JobSpec with their docs and words, as argusd's own description has them.
import type { KeyDoc } from "../kit/editor";
import { call } from "./client";

interface Shape {
    description?: string;
    enum?: string[];
    default?: unknown;
    properties?: Record<string, Shape>;
}
let asked: Promise<KeyDoc[]> | null = null;

const docOf = ([key, s]: [string, Shape]): KeyDoc => ({
    key,
    says: s.description ?? Object.keys(s.properties ?? {}).join(", "),
    words: s.enum,
});

/** Asked for once. Without an answer the editor knows no keys, and nothing else is missing. */
export const specKeys = () =>
    (asked ??= call("GET /v1/openapi.json").then(
        (api) => {
            const all = api as unknown as { components: { schemas: Record<string, Shape> } };
            return Object.entries(all.components.schemas.JobSpec?.properties ?? {}).map(docOf);
        },
        () => {
            asked = null;
            return [];
        },
    ));
