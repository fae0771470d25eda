/** The databases beside the configuration: found in the home directory, read when a rule asks, replaced while running. */
import { lstatSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf, ProtocolError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { RuleData } from "#core/rule.ts";
import type { Ip } from "#core/session.ts";
import type { Slices } from "#core/slices.ts";
import { atOnce } from "#lib/steps.ts";
import type { CompilePattern } from "./categories.ts";
import { LiveData } from "./live-data.ts";
import {
  contentsOf,
  openFile,
  openFileLater,
  openVerified,
  versionOf,
  type GeoKind,
  type OpenedFile,
} from "./opened-file.ts";

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
  readonly slices: Slices;
  readonly log: Log;
}

/** What a rule may ask for; `key` is a category with its attributes, a code or a number. */
export interface GeoKey {
  readonly kind: "geosite" | "geoip" | "asn";
  readonly key: string;
}

interface Live {
  readonly kind: GeoKind;
  readonly key: string;
  readonly data: LiveData<OpenedFile>;
}

export class Geodata {
  readonly #env: GeodataEnv;
  readonly #opened = new Map<GeoKind, OpenedFile | null>();
  /** Kinds whose file is there and is no database. */
  readonly #unusable = new Set<GeoKind>();
  readonly #inherited: ReadonlyMap<GeoKind, OpenedFile | null>;
  #onMissing = (): void => {};
  readonly #live = new Map<string, Live>();

  /** What `previous` read of files that have not changed is used again. */
  constructor(env: GeodataEnv, previous: Geodata | null) {
    this.#env = env;
    this.#inherited = previous === null ? new Map() : new Map(previous.#opened);
  }

  /**
   * Has files and categories ready, so that asking for them takes no time. What is wrong with them is said where they are
   * asked for.
   */
  async prepare(wanted: Iterable<GeoKey>): Promise<void> {
    for (const { kind: asked, key } of wanted) {
      const kind = asked === "geoip" ? this.#addressKind : asked;
      const file = await this.#fileLater(kind);
      if (file !== null) await this.#load(file, kind, key.toLowerCase()).catch(() => null);
    }
  }

  /** `google`, `google@cn`, `google@!cn@ads`: all attributes must hold. */
  geosite(category: string): RuleData {
    return this.#liveData("geosite", category.toLowerCase(), ["host"]);
  }

  geoip(code: string): RuleData {
    return this.#liveData(this.#addressKind, code.toLowerCase(), ["ip"]);
  }

  asn(number: number): RuleData {
    return this.#liveData("asn", String(number), ["ip"]);
  }

  /** `code` for the addresses of that country, and for all addresses while there is no database to judge by. */
  countryOf(code: string): (ip: Ip) => string | null {
    const data = this.geoip(code);
    const kind = this.#addressKind;
    return (ip) => (data.match({ ip }) === true || this.#file(kind) === null ? code : null);
  }

  /** Calls it whenever something is asked for whose file is not there. */
  whenMissing(tell: () => void): void {
    this.#onMissing = tell;
  }

  /** Kinds that rules have asked for. */
  get used(): ReadonlySet<GeoKind> {
    return new Set([...this.#live.values()].map(({ kind }) => kind));
  }

  /** Where the file is, or would be; null: there is none, or its age cannot be told, as that of a link to nowhere. */
  pathOf(kind: GeoKind): { readonly path: string; readonly changedAtMs: number | null } {
    const found = this.#find(kind);
    if (found === null) return { path: join(this.#env.home, GEO_FILES[kind].target), changedAtMs: null };
    return { path: found, changedAtMs: changedAtMs(found) };
  }

  /**
   * Reads a file just downloaded, with all that is in use of its kind. Throws `ProtocolError` where it cannot serve that;
   * else answers with what puts it in use, given the path at which it lies by then.
   */
  async verify(kind: GeoKind, path: string): Promise<(path: string) => void> {
    const file = await openVerified(kind, path, this.#env.slices);
    for (const { key, data } of this.#liveOf(kind))
      if ((await this.#load(file, kind, key)) === null && data.size > 0)
        throw new ProtocolError("it lacks a category that is in use");
    return (lies) => {
      const placed = { ...file, path: lies, dat: file.dat?.at(lies) ?? null };
      this.#unusable.delete(kind);
      this.#opened.set(kind, placed);
      for (const { data } of this.#liveOf(kind)) this.#attempt(lies, () => data.load(placed));
    };
  }

  /** Throws `ProtocolError` where a download must not take the place of what is there: a link, or no such database. */
  async refuseStrange(kind: GeoKind): Promise<void> {
    const path = this.#find(kind);
    if (path === null) return;
    const strange = (why: string) =>
      new ProtocolError(`${path} ${why}; it is not replaced, move it away to have one fetched`);
    if (!lstatSync(path).isFile()) throw strange("is no regular file");
    try {
      await openVerified(kind, path, this.#env.slices);
    } catch (error) {
      throw strange(`is no database of this kind (${messageOf(error)})`);
    }
  }

  get #addressKind(): "geoip" | "country" {
    return this.#env.geodataMode ? "geoip" : "country";
  }

  #liveOf(kind: GeoKind): readonly Live[] {
    return [...this.#live.values()].filter((live) => live.kind === kind);
  }

  #liveData(kind: GeoKind, key: string, reads: RuleData["reads"]): RuleData {
    const id = `${kind}/${key}`;
    const known = this.#live.get(id);
    if (known !== undefined) return known.data;
    const loads = (file: OpenedFile) => {
      const ready = file.loaded.get(key) ?? atOnce(contentsOf(file, kind, key, this.#env.compile));
      if (ready !== null) file.loaded.set(key, ready);
      else this.#env.log.warning(`${file.path} has no category ${key}: its rules match nothing`);
      return ready;
    };
    const data = new LiveData<OpenedFile>(reads, loads, () => this.#lack(kind));
    this.#live.set(id, { kind, key, data });
    const file = this.#file(kind);
    if (file !== null) this.#attempt(file.path, () => data.load(file));
    else this.#onMissing();
    return data;
  }

  /** What `LiveData` of this key will find, read in slices. */
  async #load(file: OpenedFile, kind: GeoKind, key: string): Promise<RuleData | null> {
    const { slices, compile } = this.#env;
    const ready = file.loaded.get(key) ?? (await slices.run(contentsOf(file, kind, key, compile)));
    if (ready !== null) file.loaded.set(key, ready);
    return ready;
  }

  /** Null where there is none or it cannot be read, which is said once. */
  #file(kind: GeoKind): OpenedFile | null {
    const known = this.#opened.get(kind);
    if (known !== undefined) return known;
    const path = this.#find(kind);
    if (path === null) this.#env.log.warning(this.#missing(kind));
    const file =
      path === null ? null : this.#attempt(path, () => this.#inheritedOf(kind, path) ?? openFile(kind, path));
    if (path === null || file !== null) this.#unusable.delete(kind);
    else this.#unusable.add(kind);
    this.#opened.set(kind, file);
    return file;
  }

  /** The same without waiting for the disk. What cannot be opened is left to `#file`, which says so. */
  async #fileLater(kind: GeoKind): Promise<OpenedFile | null> {
    const path = this.#opened.has(kind) ? null : this.#find(kind);
    if (path === null || this.#inheritedOf(kind, path) !== null) return this.#file(kind);
    const file = await openFileLater(kind, path).catch(() => null);
    if (file !== null && !this.#opened.has(kind)) this.#opened.set(kind, file);
    return this.#file(kind);
  }

  #inheritedOf(kind: GeoKind, path: string): OpenedFile | null {
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
      `${target} is not in ${this.#env.home}: what needs it matches nothing until it is there. ` +
      `It is fetched from geox-url.${urlKey} (${this.#env.urls[urlKey]})`
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

function changedAtMs(path: string): number | null {
  try {
    return statSync(path).mtimeMs;
  } catch {
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
