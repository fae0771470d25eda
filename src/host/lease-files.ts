/** The files of DHCP servers that a configuration names, read anew where they have changed. */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { messageOf } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import type { Log } from "#core/log.ts";
import type { LeaseNames } from "#core/neighbours.ts";
import { parseLeases, type HostNames } from "#net/address/dhcp-leases.ts";

/** Of a larger file the rest is not read. */
const MOST_BYTES = 4 * 1024 * 1024;
/** A file is looked at no more often. */
const EVERY_MS = 5_000;

interface Read {
  readonly atMs: number;
  /** Tells one state of the file from another; empty: it could not be read. */
  readonly state: string;
  readonly names: HostNames;
}

const NOTHING: HostNames = new Map();

export class LeaseFiles implements LeaseNames {
  readonly #files: Pick<SafeFiles, "resolve">;
  readonly #log: Log;
  readonly #read = new Map<string, Read>();

  constructor(files: Pick<SafeFiles, "resolve">, log: Log) {
    this.#files = files;
    this.#log = log;
  }

  nameOf(files: readonly string[], mac: string): string | null {
    for (const file of this.#read.keys()) if (!files.includes(file)) this.#read.delete(file);
    for (const file of files) {
      const name = this.#namesOf(file).get(mac);
      if (name !== undefined) return name;
    }
    return null;
  }

  #namesOf(file: string): HostNames {
    const before = this.#read.get(file);
    const atMs = performance.now();
    if (before !== undefined && atMs - before.atMs < EVERY_MS) return before.names;
    const read = this.#look(file, before);
    this.#read.set(file, { ...read, atMs });
    return read.names;
  }

  #look(file: string, before: Read | undefined): Omit<Read, "atMs"> {
    let descriptor: number | null = null;
    try {
      // Not waiting for the other side where it is a pipe.
      descriptor = openSync(this.#files.resolve(file), constants.O_RDONLY | constants.O_NONBLOCK);
      const stat = fstatSync(descriptor);
      if (!stat.isFile()) throw new Error("it is no file");
      const state = `${stat.ino} ${stat.size} ${stat.mtimeMs}`;
      if (state === before?.state) return before;
      const bytes = Buffer.alloc(Math.min(stat.size, MOST_BYTES));
      const length = readSync(descriptor, bytes, 0, bytes.length, 0);
      return { state, names: parseLeases(bytes.toString("latin1", 0, length)) };
    } catch (error) {
      if (before?.state !== "") this.#log.warning(`traffic-control.leases: ${file}: ${messageOf(error)}`);
      return { state: "", names: before?.names ?? NOTHING };
    } finally {
      if (descriptor !== null) closeSync(descriptor);
    }
  }
}
