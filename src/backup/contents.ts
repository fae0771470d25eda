/**
 * What a backup holds, as bytes. Layout: LENGTH(4, big endian) of the manifest | manifest, JSON | the configuration |
 * the values of all records in the order of the manifest.
 */
import * as z from "zod";
import { itemAt } from "#lib/at.ts";
import { BackupError } from "./sealing.ts";

/** Which store of a configuration. */
export const STORE_ROLES = ["users", "journal", "policies"] as const;
export type StoreRole = (typeof STORE_ROLES)[number];

export interface StoredPart {
  readonly name: string;
  readonly records: readonly (readonly [key: string, value: Uint8Array])[];
}

export interface BackedUpStore {
  readonly role: StoreRole;
  /** As the configuration names it; relative to the home directory. */
  readonly path: string;
  readonly parts: readonly StoredPart[];
}

/** Selections of groups, and what dashboards keep. */
export type BackedUpChoices = Readonly<Record<"selected" | "storage", Readonly<Record<string, string>>>>;

export interface BackupContents {
  /** Unix ms. */
  readonly createdAtMs: number;
  /** Of the weir that made it. */
  readonly version: string;
  /** Null: the configuration is no file. */
  readonly configuration: string | null;
  readonly stores: readonly BackedUpStore[];
  readonly choices: BackedUpChoices;
}

const texts = z.record(z.string(), z.string());
const manifestShape = z.object({
  created_at: z.int().min(0),
  version: z.string(),
  configuration: z.int().min(0).nullable(),
  stores: z.array(
    z.object({
      role: z.enum(STORE_ROLES),
      path: z.string().min(1),
      parts: z.record(z.string(), z.array(z.tuple([z.string(), z.int().min(0)]))),
    }),
  ),
  choices: z.object({ selected: texts, storage: texts }),
});

const LENGTH_BYTES = 4;

export function encodeContents(contents: BackupContents): Buffer {
  const configuration = contents.configuration === null ? null : Buffer.from(contents.configuration);
  const manifest: z.input<typeof manifestShape> = {
    created_at: contents.createdAtMs,
    version: contents.version,
    configuration: configuration?.length ?? null,
    stores: contents.stores.map(({ role, path, parts }) => ({
      role,
      path,
      parts: Object.fromEntries(
        parts.map(({ name, records }) => [name, records.map(([key, { length }]) => [key, length] as const)]),
      ) as Record<string, [string, number][]>,
    })),
    choices: contents.choices,
  };
  const head = Buffer.from(JSON.stringify(manifest));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(head.length);
  const values = contents.stores.flatMap(({ parts }) =>
    parts.flatMap(({ records }) => records.map(([, value]) => value)),
  );
  return Buffer.concat([length, head, ...(configuration === null ? [] : [configuration]), ...values]);
}

/** Throws `BackupError`. */
export function decodeContents(bytes: Buffer): BackupContents {
  const reader = new Reader(bytes);
  const manifest = manifestOf(reader.take(reader.take(LENGTH_BYTES).readUInt32BE()));
  const configuration =
    manifest.configuration === null ? null : reader.take(manifest.configuration).toString();
  const stores = manifest.stores.map(({ role, path, parts }) => ({
    role,
    path,
    parts: Object.entries(parts).map(([name, records]) => ({
      name,
      records: records.map(([key, size]) => [key, reader.take(size)] as const),
    })),
  }));
  reader.end();
  const { created_at: createdAtMs, version, choices } = manifest;
  return { createdAtMs, version, configuration, stores, choices };
}

function manifestOf(bytes: Buffer): z.output<typeof manifestShape> {
  try {
    return manifestShape.parse(JSON.parse(bytes.toString()));
  } catch (error) {
    const issue = error instanceof z.ZodError ? itemAt(error.issues, 0).path.join(".") : "it is no JSON";
    throw new BackupError(`its list of contents cannot be read (${issue})`, { cause: error });
  }
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  take(length: number): Buffer {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new BackupError("it is shorter than its list of contents says");
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }

  end(): void {
    if (this.#at !== this.#bytes.length) throw new BackupError("it is longer than its list of contents says");
  }
}
