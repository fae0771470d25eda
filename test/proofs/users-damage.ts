/**
 * One file of a state is damaged: the program starts all the same, with every change that was acknowledged. The files
 * are those of an orderly end, or those that a kill leaves, with both logs.
 */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LiveConnections } from "#core/live.ts";
import type { Log } from "#core/log.ts";
import { SILENT } from "#core/log.ts";
import type { UserAdmin } from "#core/users.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import { vless } from "#protocols/vless/index.ts";
import type { UsersSettings } from "#users/settings.ts";
import { Users } from "#users/users.ts";
import { openStoreHere } from "../support/store-here.ts";

export interface DamageFindings {
  readonly rounds: number;
  /** Rounds after which the log said what was healed. */
  readonly healed: number;
  readonly faults: readonly string[];
}

const NO_CONNECTIONS: LiveConnections = {
  size: 0,
  ended: [],
  uploadTotalBytes: 0,
  downloadTotalBytes: 0,
  close: () => false,
  closeAll: () => 0,
  [Symbol.iterator]: () => [].values(),
};

type Random = (below: number) => number;
const PAGE_BYTES = 4096;
const FILES = ["", "-wal", ".bak", ".bak-wal"] as const;

const DAMAGES: Readonly<Record<string, (bytes: Buffer, random: Random) => Buffer>> = {
  flip(bytes, random) {
    const from = random(bytes.length);
    bytes[from] = (bytes[from] as number) ^ (1 << random(8));
    return bytes;
  },
  scribble(bytes, random) {
    const from = random(bytes.length);
    for (let at = from; at < Math.min(bytes.length, from + 16); at++) bytes[at] = random(256);
    return bytes;
  },
  truncate: (bytes, random) => bytes.subarray(0, random(bytes.length)),
  "page of noise"(bytes, random) {
    const from = random(Math.ceil(bytes.length / PAGE_BYTES)) * PAGE_BYTES;
    for (let at = from; at < Math.min(bytes.length, from + PAGE_BYTES); at++) bytes[at] = random(256);
    return bytes;
  },
  "page of zeros"(bytes, random) {
    const from = random(Math.ceil(bytes.length / PAGE_BYTES)) * PAGE_BYTES;
    return bytes.fill(0, from, Math.min(bytes.length, from + PAGE_BYTES));
  },
  "page moved"(bytes, random) {
    const pages = Math.floor(bytes.length / PAGE_BYTES);
    const from = random(Math.max(1, pages)) * PAGE_BYTES;
    return bytes.copyWithin(random(Math.max(1, pages)) * PAGE_BYTES, from, from + PAGE_BYTES);
  },
};

export async function proveDamage(rounds: number, random: Random): Promise<DamageFindings> {
  using bench = new Bench();
  const { closed, killed, wanted } = await bench.prepare();
  const faults: string[] = [];
  let healed = 0;
  const kinds = Object.entries(DAMAGES);
  for (let round = 0; round < rounds; round++) {
    const source = round % 2 === 0 ? killed : closed;
    const files = FILES.filter((suffix) => existsSync(join(source, `state.db${suffix}`)));
    const suffix = files[random(files.length)] as string;
    const [kind, damage] = kinds[round % kinds.length] as (typeof kinds)[number];
    const home = bench.copy(source);
    const path = join(home, `state.db${suffix}`);
    writeFileSync(path, damage(readFileSync(path), random));
    const lines: string[] = [];
    const what = `round ${round}: ${kind} of state.db${suffix}, ${source === killed ? "killed" : "closed"}`;
    try {
      const found = await bench.look(home, lines);
      if (found !== wanted) faults.push(`${what}: other contents`);
      else if (lines.length > 0) healed++;
    } catch (error) {
      faults.push(`${what}: ${(error as Error).message}`);
    }
    rmSync(home, { recursive: true });
  }
  return { rounds, healed, faults };
}

export function shownDamage({ rounds, healed, faults }: DamageFindings): string {
  return `${rounds} damaged files: ${faults.length} did not start or lost something, ${healed} were healed and said so, the rest was not needed`;
}

class Bench implements Disposable {
  readonly #home = mkdtempSync(join(tmpdir(), "weir-damage-"));
  #made = 0;

  /** Two folders of the same state, and what must be found in it. */
  async prepare(): Promise<{ readonly closed: string; readonly killed: string; readonly wanted: string }> {
    const home = this.#folder();
    const users = await this.#open(home, SILENT);
    await fill(users.admin as UserAdmin);
    const wanted = contentsOf(users.admin as UserAdmin);
    const killed = this.copy(home); // the files of a program that is stopped between two system calls
    users.close();
    return { closed: home, killed, wanted };
  }

  async look(home: string, lines: string[]): Promise<string> {
    const write = (text: string | (() => string)) =>
      void lines.push(typeof text === "string" ? text : text());
    const users = await this.#open(home, { ...SILENT, error: write, warning: write });
    try {
      return contentsOf(users.admin as UserAdmin);
    } finally {
      users.close();
    }
  }

  copy(source: string): string {
    const home = this.#folder();
    cpSync(source, home, { recursive: true });
    return home;
  }

  #folder(): string {
    return mkdtempSync(join(this.#home, `${this.#made++}-`));
  }

  async #open(home: string, log: Log): Promise<Users> {
    const users = new Users({
      log,
      nowMs: Date.now,
      live: NO_CONNECTIONS,
      protocols: PROTOCOLS,
      openStore: openStoreHere,
    });
    await users.adopt(settingsOf(join(home, "state.db")), [], () => []);
    return users;
  }

  [Symbol.dispose](): void {
    rmSync(this.#home, { recursive: true, force: true });
  }
}

function settingsOf(store: string): UsersSettings {
  const support = vless.users as NonNullable<typeof vless.users>;
  const options = vless.inbound?.schema.parse({ users: [] }) as object;
  return {
    secret: "x".repeat(32),
    publicBaseUrl: "https://proxy.example.com",
    subscriptionByAgent: false,
    store,
    listeners: ["edge", "other"].map((name) => ({ name, protocol: "vless", support, options, ports: [443] })),
    fleet: null,
    former: null,
    removedHistoryMs: 90 * 86_400_000,
  };
}

/** Enough for several pages, with all that a change can be, and deleted users whose bytes may not come back. */
async function fill(admin: UserAdmin): Promise<void> {
  const revision = (tag: string) => admin.inbounds().find((one) => one.tag === tag)?.revision as number;
  for (const tag of ["edge", "other"]) {
    const ids: string[] = [];
    for (let at = 0; at < 40; at++)
      ids.push((await admin.create({ inbound: tag, name: `user ${at}`, revision: revision(tag) })).id);
    for (const [at, id] of ids.entries()) {
      if (at % 5 === 0) await admin.remove(id, revision(tag));
      else if (at % 5 === 1) await admin.update(id, { revision: revision(tag), enabled: false });
      else if (at % 5 === 2) await admin.rotateSubscription(id, revision(tag));
      else if (at % 5 === 3) await admin.update(id, { revision: revision(tag), uuid: crypto.randomUUID() });
      else await admin.resetTraffic(id, revision(tag));
    }
  }
}

/** Everything but revisions of a start: they grow with every change, so they must be the same, too. */
function contentsOf(admin: UserAdmin): string {
  return JSON.stringify([admin.inbounds(), admin.users(null).map(({ id }) => admin.user(id))]);
}
