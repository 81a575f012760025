// SPDX-License-Identifier: Apache-2.0
// sending.ts - the files of this computer that become a data set: one directory, one file after the other. What was cut
// off goes on: files that are at their place already are not sent again.
import { putFile } from "../api/upload";

export interface Place {
    /** The data set's name. */
    name: string;
    /** The directory below the shared root. */
    at: string;
    there: Set<File>;
}

/** The place of a data set of this name and these files: the one in hand, unless that is another one's, or has a file
 * that is no longer chosen. */
export function placeOf(before: Place | null, user: string, name: string, files: File[]): Place {
    if (before?.name === name && [...before.there].every((f) => files.includes(f))) return before;
    const word = Array.from(crypto.getRandomValues(new Uint8Array(6)), (b) => b.toString(16).padStart(2, "0"));
    return { name, at: `users/${user}/datasets/${name}/upload-${word.join("")}`, there: new Set() };
}

/** A directory holds one file of a name: of several the last one chosen. */
export const lastOfEachName = (files: File[]): File[] => [...new Map(files.map((f) => [f.name, f])).values()];

type Put = (...of: Parameters<typeof putFile>) => Promise<unknown>;

/** told: bytes of all files that are on the server. */
export async function sendAll(
    files: File[],
    place: Place,
    told: (sent: number) => void,
    signal: AbortSignal,
    put: Put = putFile,
) {
    let before = 0;
    for (const f of files) {
        signal.throwIfAborted();
        if (!place.there.has(f)) {
            const sent = (n: number) => told(before + n);
            // The directory is a new one after a reload; the bytes that were sent are found by the data set's name.
            // Nobody else writes there: a file is replaced only where the answer to it was lost.
            await put(f, `${place.at}/${f.name}`, true, sent, signal, `data ${place.name}`);
            place.there.add(f);
        }
        before += f.size;
        told(before);
    }
}
