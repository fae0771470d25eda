/** A session with nftables that is lost: one other takes its place, and nothing is left when the table is closed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import { NftError, type NftSession } from "#platform/nftables.ts";
import { capturePlan } from "../../../test/support/capture-options.ts";
import { FirewallOpenings } from "#capture/firewall.ts";
import { RedirectTable } from "./table.ts";

const PLAN = capturePlan();

/** A kernel in which a table lives as long as the session that made it. */
class Kernel {
  owner: Session | null = null;
  readonly sessions: Session[] = [];
  readonly ran: string[] = [];
  refuses = false;
  /** What begins with this is refused. */
  refusesText: string | null = null;
  /** Of another process. */
  foreign: readonly string[] = [];
  /** What opening a session waits for. */
  gate: Promise<void> = Promise.resolve();

  readonly open = async (): Promise<NftSession> => {
    await this.gate;
    const session = new Session(this);
    this.sessions.push(session);
    return session;
  };

  /** Those that are there; ours has the name by which it was made last. */
  get tables(): readonly string[] {
    const own = this.ran.findLast((text) => text.includes("\ntable inet svc"));
    const name = /^table (inet \w+) /m.exec(own ?? "")?.[1] ?? "inet svc";
    return this.owner === null ? this.foreign : [...this.foreign, name];
  }

  get openSessions(): number {
    return this.sessions.filter(({ isOpen }) => isOpen).length;
  }
}

class Session implements NftSession {
  readonly #kernel: Kernel;
  readonly #lost = Promise.withResolvers<Error>();
  readonly lost = this.#lost.promise;
  isOpen = true;

  constructor(kernel: Kernel) {
    this.#kernel = kernel;
  }

  async run(commands: string): Promise<string> {
    const kernel = this.#kernel;
    if (!this.isOpen) throw new NftError("nftables: the session has ended");
    if (kernel.refusesText !== null && commands.startsWith(kernel.refusesText))
      throw new NftError("nftables: Device or resource busy");
    if (kernel.refuses) throw new NftError("nftables: No buffer space available");
    kernel.ran.push(commands);
    if (commands.startsWith("list tables")) return kernel.tables.map((name) => `table ${name}`).join("\n");
    if (kernel.owner !== null && kernel.owner !== this) throw new NftError("Operation not permitted");
    kernel.owner = /^delete table [^\n]+$/.test(commands) ? null : this;
    return "";
  }

  lose(): void {
    this.#end();
    this.#lost.resolve(new NftError("nftables: the session has ended"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end();
  }

  #end(): void {
    this.isOpen = false;
    if (this.#kernel.owner === this) this.#kernel.owner = null;
  }
}

const turns = () => new Promise(setImmediate);

test("a session that is lost while the table is watched is replaced by one other, which then has the table", async () => {
  const kernel = new Kernel();
  const table = await RedirectTable.open(PLAN, [], SILENT, kernel.open);
  kernel.sessions[0]?.lose();
  await table.keep();
  await turns();
  assert.equal(kernel.sessions.length, 2);
  assert.equal(kernel.openSessions, 1);
  assert.equal(kernel.owner, kernel.sessions[1]);
  await table[Symbol.asyncDispose]();
  assert.deepEqual([kernel.openSessions, kernel.owner], [0, null]);
});

test("closed while another session is being opened: neither a table nor a session stays", async () => {
  const kernel = new Kernel();
  const table = await RedirectTable.open(PLAN, [], SILENT, kernel.open);
  const gate = Promise.withResolvers<void>();
  kernel.gate = gate.promise;
  kernel.sessions[0]?.lose();
  await turns();
  const closed = table[Symbol.asyncDispose]();
  gate.resolve();
  await closed;
  await turns();
  assert.deepEqual([kernel.openSessions, kernel.owner], [0, null]);
});

test("networks around that could not be written are written by the next look, once", async () => {
  const kernel = new Kernel();
  const table = await RedirectTable.open(PLAN, [], SILENT, kernel.open);
  const around = [{ bytes: Uint8Array.of(192, 0, 2, 0), bits: 24 }];
  kernel.refuses = true;
  await assert.rejects(table.updateLocal(around), NftError);
  kernel.refuses = false;
  kernel.ran.length = 0;
  for (let times = 0; times < 3; times++) await table.updateLocal(around);
  assert.equal(kernel.ran.length, 1, kernel.ran.join("\n"));
  assert.match(
    kernel.ran[0] ?? "",
    /add element inet svc inet4_local_address_set \{ 192\.0\.2\.0-192\.0\.2\.255 \}/,
  );
  await table[Symbol.asyncDispose]();
});

test("a session that could not be opened is opened anew by the next check", async () => {
  const kernel = new Kernel();
  const table = await RedirectTable.open(PLAN, [], SILENT, kernel.open);
  kernel.gate = Promise.reject(new NftError("no memory"));
  kernel.sessions[0]?.lose();
  await table.keep();
  await turns();
  assert.equal(kernel.owner, null);
  kernel.gate = Promise.resolve();
  await table.keep();
  assert.equal(kernel.owner, kernel.sessions[1]);
  await table[Symbol.asyncDispose]();
});

test("beside the table of another process it has a second name, and the first once that is free", async () => {
  const kernel = new Kernel();
  kernel.foreign = ["inet svc"];
  const table = await RedirectTable.open(PLAN, [], SILENT, kernel.open, { beside: true });
  await table.keep();
  assert.deepEqual(kernel.tables, ["inet svc", "inet svc_next"]);
  kernel.foreign = [];
  kernel.refusesText = "delete table inet svc_next";
  await table.keep();
  assert.deepEqual(kernel.tables, ["inet svc_next"]);
  kernel.refusesText = null;
  await table.keep();
  assert.deepEqual(kernel.tables, ["inet svc"]);
  assert.match(kernel.ran.at(-2) ?? "", /^delete table inet svc_next\nadd table inet svc\n/);
  await table.updateLocal([{ bytes: Uint8Array.of(192, 0, 2, 0), bits: 24 }]);
  assert.match(kernel.ran.at(-1) ?? "", /inet svc inet4_local_address_set/);
  await table[Symbol.asyncDispose]();
  assert.equal(kernel.ran.at(-1), "delete table inet svc");
});

test("openings in a firewall that starts again while they are taken away do not come back", async () => {
  const chain = new Map<number, string>();
  let handle = 0;
  const run = async (commands: string): Promise<string> => {
    await turns();
    for (const line of commands.trim().split("\n")) {
      if (line.startsWith("insert rule inet fw4 input")) chain.set(++handle, line.split("input ")[1] ?? "");
      if (line.startsWith("delete rule inet fw4 input")) chain.delete(Number(line.split("handle ")[1]));
      if (line.startsWith("list chain") && !line.endsWith("inet fw4 input")) throw new NftError("no chain");
    }
    return Array.from(chain, ([number, rule]) => `${rule} # handle ${number}`).join("\n");
  };
  const openings = new FirewallOpenings(() => ({ run }) as NftSession, '"tun0"', SILENT);
  await Promise.all([openings.keep(), openings.keep()]);
  assert.equal(chain.size, 1);
  chain.clear();
  await Promise.all([openings.keep(), openings.remove(), openings.keep()]);
  assert.equal(chain.size, 0);
});
