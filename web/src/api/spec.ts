// SPDX-License-Identifier: Apache-2.0
// spec.ts - the keys of a JobSpec with their docs and words, as argusd's own JSON schema has them.
import { keysOf, type KeyDoc, type Shape } from "../kit/keydoc";
import { call } from "./client";

let asked: Promise<KeyDoc[]> | null = null;

/** Asked for once. Without an answer the editor knows no keys, and nothing else is missing. */
export const specKeys = () =>
    (asked ??= call("GET /v1/jobspec.schema.json").then(
        (schema) => keysOf(schema as unknown as Shape),
        () => {
            asked = null;
            return [];
        },
    ));
