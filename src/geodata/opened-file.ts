/** One database file: opened, checked, and what it says of a category, a country or an autonomous system. */
import { readFileSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { ProtocolError } from "#core/errors.ts";
import type { RuleData } from "#core/rule.ts";
import type { Slices } from "#core/slices.ts";
import type { Steps } from "#lib/steps.ts";
import { sharedBytes } from "#lib/shared-arrays.ts";
import { openCountries, openSystems, type CodesOf, type SystemOf } from "#net/address/address-records.ts";
import { Mmdb } from "#net/address/mmdb.ts";
import { networksInSteps, sitesInSteps, type CompilePattern } from "./categories.ts";
import { DatFile } from "./dat-file.ts";
import { categoryData, countryData, systemData, type OpenedDatabase } from "./address-data.ts";

export type GeoKind = "geosite" | "geoip" | "country" | "asn";

/** A file that has been opened; shared by the runtimes that see the same version of it. */
export interface OpenedFile {
  readonly path: string;
  readonly version: string;
  readonly countries: OpenedDatabase<CodesOf> | null;
  readonly systems: OpenedDatabase<SystemOf> | null;
  readonly dat: DatFile | null;
  /** By key: category and attributes, code, number. */
  readonly loaded: Map<string, RuleData>;
}

/** Larger files than any that is known. At the bound the file is not used. */
const MOST_BYTES = 512 * 1024 * 1024;

/** Throws `ProtocolError`, or what the file system throws. */
export function openFile(kind: GeoKind, path: string): OpenedFile {
  const version = usableVersion(path);
  return opened(kind, path, version, hasRecords(kind) ? readFileSync(path) : null);
}

/** The same without waiting for the disk. */
export async function openFileLater(kind: GeoKind, path: string): Promise<OpenedFile> {
  const version = usableVersion(path);
  return opened(kind, path, version, hasRecords(kind) ? await readFile(path) : null);
}

/** The same for a file that may be damaged anywhere: all of it is looked at, in slices. */
export async function openVerified(kind: GeoKind, path: string, slices: Slices): Promise<OpenedFile> {
  const version = usableVersion(path);
  const bytes = hasRecords(kind) ? await readFile(path) : null;
  if (bytes !== null) await slices.run(new Mmdb(bytes).verifyInSteps());
  return opened(kind, path, version, bytes);
}

export function versionOf(path: string): string {
  const { ino, size, mtimeMs } = statSync(path);
  return `${ino}/${size}/${mtimeMs}`;
}

function hasRecords(kind: GeoKind): boolean {
  return kind === "country" || kind === "asn";
}

function usableVersion(path: string): string {
  const stats = statSync(path);
  if (!stats.isFile()) throw new ProtocolError("it is no regular file"); // one could be waited for without an end
  if (stats.size > MOST_BYTES) throw new ProtocolError("it is larger than 512 MiB");
  return versionOf(path);
}

function opened(kind: GeoKind, path: string, version: string, read: Buffer | null): OpenedFile {
  const bytes = read === null ? null : sharedCopy(read);
  return {
    path,
    version,
    countries: kind === "country" && bytes !== null ? { find: openCountries(bytes), bytes } : null,
    systems: kind === "asn" && bytes !== null ? { find: openSystems(bytes), bytes } : null,
    dat: bytes === null ? DatFile.open(path) : null,
    loaded: new Map(),
  };
}

function sharedCopy(bytes: Buffer): Buffer {
  const shared = sharedBytes(bytes.length);
  shared.set(bytes);
  return Buffer.from(shared.buffer);
}

/** What `key` stands for in a file of this kind; null: the file has no such category. Throws `ProtocolError`. */
export function* contentsOf(
  { dat, countries, systems }: OpenedFile,
  kind: GeoKind,
  key: string,
  compile: CompilePattern,
): Steps<RuleData | null> {
  if (kind === "country") return countries === null ? null : countryData(countries, key);
  if (kind === "asn") return systems === null ? null : systemData(systems, Number(key));
  const [name = "", ...attributes] = kind === "geosite" ? key.split("@") : [key];
  const messages = dat?.read(name) ?? [];
  if (messages.length === 0) return null;
  if (kind === "geosite") return yield* sitesInSteps(messages, attributes, compile);
  return categoryData(yield* networksInSteps(messages), key);
}
