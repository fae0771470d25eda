/** The databases beside the configuration: found in the home directory, read when a rule asks, replaced while running. */
import { lstatSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf, ProtocolError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { RuleData } from "#core/rule.ts";
import type { Ip } from "#core/session.ts";
import { categoryData, countryData, systemData } from "./address-data.ts";
import { openCountries, openSystems, type CodesOf, type SystemOf } from "./address-records.ts";
import { readNetworks, readSites, type CompilePattern } from "./categories.ts";
import { DatFile } from "./dat-file.ts";
import { LiveData } from "./live-data.ts";

export type GeoKind = "geosite" | "geoip" | "country" | "asn";

interface GeoFile {
  /** In the order in which they are looked for; case does not matter. */
  readonly names: readonly string[];
  /** What a download is called where there is none yet. */
  readonly target: string;
  /** The key of `geox-url` that says where it comes from. */
  readonly urlKey: "geosite" | "geoip" | "mmdb" | "asn";
}

export const GEO_FILES: Readonly<Record<GeoKind, GeoFile>> = {
  geosite: { names: ["geosite.dat"], target: "GeoSite.dat", urlKey: "geosite" },
  geoip: { names: ["geoip.dat"], target: "GeoIP.dat", urlKey: "geoip" },
  country: { names: ["country.mmdb", "geoip.db", "geoip.metadb"], target: "geoip.metadb", urlKey: "mmdb" },
  asn: { names: ["asn.mmdb"], target: "ASN.mmdb", urlKey: "asn" },
};

/** Is it the name of a database? */
export function isGeoFile(name: string): boolean {
  return Object.values(GEO_FILES).some(({ names }) => names.includes(name.toLowerCase()));
}

export interface GeodataEnv {
  /** Absolute path; need not exist. */
  readonly home: string;
  /** GEOIP reads GeoIP.dat instead of the country database. */
  readonly geodataMode: boolean;
  readonly urls: Readonly<Record<GeoFile["urlKey"], string>>;
  readonly compile: CompilePattern;
  readonly log: Log;
}

/** A file that has been opened; shared by the runtimes that see the same version of it. */
interface Opened {
  readonly path: string;
  readonly version: string;
  readonly codesOf: CodesOf | null;
  readonly systemOf: SystemOf | null;
  readonly dat: DatFile | null;
  /** By category and attributes. */
  readonly loaded: Map<string, RuleData>;
}

export class Geodata {
  readonly #env: GeodataEnv;
  readonly #opened = new Map<GeoKind, Opened | null>();
  /** Kinds whose file is there and is no database. */
  readonly #unusable = new Set<GeoKind>();
  readonly #inherited: ReadonlyMap<GeoKind, Opened | null>;
  readonly #live = new Map<string, { readonly kind: GeoKind; readonly data: LiveData<Opened> }>();

  /** What `previous` read of files that have not changed is used again. */
  constructor(env: GeodataEnv, previous: Geodata | null) {
    this.#env = env;
    this.#inherited = previous === null ? new Map() : new Map(previous.#opened);
  }

  /** `google`, `google@cn`, `google@!cn@ads`: all attributes must hold. */
  geosite(category: string): RuleData {
    const [name = "", ...attributes] = category.toLowerCase().split("@");
    return this.#liveData("geosite", category.toLowerCase(), ["host"], ({ dat }) =>
      this.#category(dat, name, (messages) => readSites(messages, attributes, this.#env.compile)),
    );
  }

  geoip(code: string): RuleData {
    const wanted = code.toLowerCase();
    if (this.#env.geodataMode)
      return this.#liveData("geoip", wanted, ["ip"], ({ dat }) =>
        this.#category(dat, wanted, (messages) => categoryData(readNetworks(messages), wanted)),
      );
    return this.#liveData("country", wanted, ["ip"], ({ codesOf }) =>
      codesOf === null ? null : countryData(codesOf, wanted),
    );
  }

  asn(number: number): RuleData {
    return this.#liveData("asn", String(number), ["ip"], ({ systemOf }) =>
      systemOf === null ? null : systemData(systemOf, number),
    );
  }

  /** A matcher for `code`; null when there is no database. */
  countryOf(code: string): ((ip: Ip) => string | null) | null {
    const data = this.geoip(code);
    if (this.#file(this.#env.geodataMode ? "geoip" : "country") === null) return null;
    return (ip) => (data.match({ ip }) === true ? code : null);
  }

  /** Kinds that rules have asked for. */
  get used(): ReadonlySet<GeoKind> {
    return new Set([...this.#live.values()].map(({ kind }) => kind));
  }

  /** Where the file is, or would be. */
  pathOf(kind: GeoKind): { readonly path: string; readonly changedAtMs: number | null } {
    const found = this.#find(kind);
    if (found === null) return { path: join(this.#env.home, GEO_FILES[kind].target), changedAtMs: null };
    return { path: found, changedAtMs: statSync(found).mtimeMs };
  }

  /** Throws `ProtocolError` where a file just downloaded cannot serve what is in use. */
  verify(kind: GeoKind, path: string): void {
    const opened = open(kind, path, true);
    for (const { kind: ofKind, data } of this.#live.values())
      if (ofKind === kind && data.loads(opened) === null && data.size > 0)
        throw new ProtocolError("it lacks a category that is in use");
  }

  /** Throws `ProtocolError` where a download must not take the place of what is there: a link, or no such database. */
  refuseStrange(kind: GeoKind): void {
    const path = this.#find(kind);
    if (path === null) return;
    const strange = (why: string) =>
      new ProtocolError(`${path} ${why}; it is not replaced, move it away to have one fetched`);
    if (!lstatSync(path).isFile()) throw strange("is no regular file");
    try {
      open(kind, path, true);
    } catch (error) {
      throw strange(`is no database of this kind (${messageOf(error)})`);
    }
  }

  /** The file has been replaced: everything that was read of it is read again. Where that fails the old stays. */
  reload(kind: GeoKind): void {
    this.#opened.delete(kind);
    const opened = this.#file(kind);
    if (opened === null) return;
    for (const { kind: ofKind, data } of this.#live.values()) if (ofKind === kind) data.load(opened);
  }

  #liveData(
    kind: GeoKind,
    key: string,
    reads: RuleData["reads"],
    load: (opened: Opened) => RuleData | null,
  ): RuleData {
    const id = `${kind}/${key}`;
    const known = this.#live.get(id);
    if (known !== undefined) return known.data;
    const loads = (opened: Opened) => {
      const ready = opened.loaded.get(key) ?? load(opened);
      if (ready !== null) opened.loaded.set(key, ready);
      else this.#env.log.warning(`${opened.path} has no category ${key}: its rules match nothing`);
      return ready;
    };
    const data = new LiveData<Opened>(reads, loads, () => this.#lack(kind));
    this.#live.set(id, { kind, data });
    const opened = this.#file(kind);
    if (opened !== null) this.#attempt(opened.path, () => data.load(opened));
    return data;
  }

  #category(
    dat: DatFile | null,
    name: string,
    read: (messages: readonly Buffer[]) => RuleData,
  ): RuleData | null {
    const messages = dat?.read(name) ?? [];
    return messages.length === 0 ? null : read(messages);
  }

  /** Null where there is none or it cannot be read, which is said once. */
  #file(kind: GeoKind): Opened | null {
    const known = this.#opened.get(kind);
    if (known !== undefined) return known;
    const path = this.#find(kind);
    let opened: Opened | null = null;
    this.#unusable.delete(kind);
    if (path === null) this.#env.log.warning(this.#missing(kind));
    else opened = this.#attempt(path, () => this.#inheritedOf(kind, path) ?? open(kind, path, false));
    if (path !== null && opened === null) this.#unusable.add(kind);
    this.#opened.set(kind, opened);
    return opened;
  }

  #inheritedOf(kind: GeoKind, path: string): Opened | null {
    const before = this.#inherited.get(kind) ?? null;
    return before !== null && before.path === path && before.version === versionOf(path) ? before : null;
  }

  #attempt<T>(path: string, work: () => T): T | null {
    try {
      return work();
    } catch (error) {
      this.#env.log.warning(`${path} cannot be used, its rules match nothing: ${messageOf(error)}`);
      return null;
    }
  }

  /** Why rules of this kind have no data. */
  #lack(kind: GeoKind): string {
    if (this.#unusable.has(kind)) return "database cannot be read";
    return this.#opened.get(kind) === null ? "database missing" : "not in the database";
  }

  #missing(kind: GeoKind): string {
    const { target, urlKey } = GEO_FILES[kind];
    return (
      `${target} is not in ${this.#env.home}: rules that need it match nothing. ` +
      `Put it there, or let POST /configs/geo or geo-auto-update fetch it from geox-url.${urlKey} (${this.#env.urls[urlKey]})`
    );
  }

  #find(kind: GeoKind): string | null {
    const { home } = this.#env;
    const present = new Map(listFolder(home).map((name) => [name.toLowerCase(), name]));
    for (const name of GEO_FILES[kind].names) {
      const found = present.get(name);
      if (found !== undefined) return join(home, found);
    }
    return null;
  }
}

function listFolder(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // a home that does not exist has no databases
  }
}

function versionOf(path: string): string {
  const { ino, size, mtimeMs } = statSync(path);
  return `${ino}/${size}/${mtimeMs}`;
}

/** Larger files than any that is known. At the bound the file is not used. */
const MOST_BYTES = 512 * 1024 * 1024;

function open(kind: GeoKind, path: string, whole: boolean): Opened {
  const stats = statSync(path);
  if (!stats.isFile()) throw new ProtocolError("it is no regular file"); // one could be waited for without an end
  const version = versionOf(path);
  if (stats.size > MOST_BYTES) throw new ProtocolError("it is larger than 512 MiB");
  const none = {
    path,
    version,
    codesOf: null,
    systemOf: null,
    dat: null,
    loaded: new Map<string, RuleData>(),
  };
  if (kind === "country") return { ...none, codesOf: openCountries(readFileSync(path), whole) };
  if (kind === "asn") return { ...none, systemOf: openSystems(readFileSync(path), whole) };
  return { ...none, dat: DatFile.open(path) };
}
