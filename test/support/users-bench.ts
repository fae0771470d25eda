/** Managed users on fake listeners, with clocks that tests set. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ManagedInbound, User } from "#core/inbound.ts";
import { type Log, SILENT } from "#core/log.ts";
import type { Meter } from "#core/meter.ts";
import type { Protocol, UserSupport } from "#core/protocol.ts";
import type { Decision } from "#core/router.ts";
import type { Metadata } from "#core/session.ts";
import type { UserAdmin, UserView } from "#core/users.ts";
import { openFleet } from "#fleet/node.ts";
import type { FleetSettings } from "#users/fleet-settings.ts";
import type { ManagedListener, UsersSettings } from "#users/settings.ts";
import { Users } from "#users/users.ts";
import { openStoreHere } from "./store-here.ts";

let made = 0;
const SUPPORT: UserSupport = {
  label: "Test",
  network: "tcp",
  isAdditional: false,
  credential: "uuid",
  flows: [],
  makeCredential: () => `made ${made++}`,
  identify: (text) => (text === "" ? null : text),
  written: (options) => (options as { users: { name: string; credential: string; flow: string }[] }).users,
  emptied: (options) => ({ ...options, users: [] }),
  shareLink: (_, { host, port }, { name, credential }) => `test://${credential}@${host}:${port}#${name}`,
  decoyLink: "test://none@192.0.2.1:443#decoy",
};
const TEST: Protocol = { type: "test", users: SUPPORT };

export class FakeInbound implements ManagedInbound {
  readonly name: string;
  readonly type = "Test";
  readonly endpoints = [];
  users: readonly User[] = [];
  calls = 0;
  failures = 0;
  failure = new Error("no");
  constructor(name: string) {
    this.name = name;
  }
  replaceUsers(users: readonly User[]): void {
    this.calls++;
    if (this.failures-- > 0) throw this.failure;
    this.users = users;
  }
  async [Symbol.asyncDispose](): Promise<void> {}
}

export const listener = (name: string, ...names: string[]): ManagedListener => ({
  name,
  protocol: "test",
  support: SUPPORT,
  options: {
    users: names.map((one) => ({ name: one, credential: `secret of ${one || "none"}`, flow: "" })),
  },
  ports: [0, 8443],
});

/** How a bench differs from a single node with clocks that stand still. */
export interface BenchOptions {
  readonly fleet?: FleetSettings;
  readonly log?: Log;
  /** The state file's folder is another bench's, and stays. */
  readonly home?: string;
}

export class Bench implements Disposable {
  readonly #options: BenchOptions;
  #left: Promise<void> | null = null;
  readonly home: string;
  /** May jump. Of a node of a fleet, what its clock is wrong by. */
  nowMs = 1_785_312_000_000;
  monotonicMs = 0;
  /** The machine's run, as from the next start of the program. Null: the machine does not say. */
  bootId: string | null = null;
  readonly live: { readonly metadata: Metadata }[] = [];
  /** A test may put another one in its place. */
  openStore = openStoreHere;
  users: Users;
  readonly inbounds: FakeInbound[] = [];

  constructor(options: BenchOptions = {}) {
    this.#options = options;
    this.home = options.home ?? mkdtempSync(join(tmpdir(), "weir-users-"));
    if (options.fleet !== undefined) this.nowMs = 0;
    this.users = this.#open();
  }

  #open(): Users {
    const live = this.live as never;
    const isReal = this.#options.fleet !== undefined; // the database has a clock, too
    return new Users({
      log: this.#options.log ?? SILENT,
      nowMs: () => (isReal ? Date.now() + this.nowMs : this.nowMs),
      monotonicMs: () => (isReal ? performance.now() : this.monotonicMs),
      boot: this.bootId === null ? null : { id: this.bootId, nowMs: () => this.monotonicMs },
      live,
      protocols: [TEST],
      openStore: (store) => this.openStore(store),
      openFleet,
    });
  }

  settings(listeners: readonly ManagedListener[], store = "state.db"): UsersSettings {
    const secret = "x".repeat(32);
    const publicBaseUrl = "https://p.example/x";
    return {
      secret,
      publicBaseUrl,
      subscriptionByAgent: false,
      store: join(this.home, store),
      listeners,
      former: null,
      removedHistoryMs: 90 * 86_400_000,
      fleet: this.#options.fleet ?? null,
    };
  }

  /** As a start or a reload does it, with fresh listeners. */
  async adopt(listeners: readonly ManagedListener[] | null, store?: string): Promise<readonly FakeInbound[]> {
    if (this.#left !== null) await this.#left; // else the reload is queued when this returns
    const fresh = (listeners ?? []).map(({ name }) => new FakeInbound(name));
    const settings = listeners === null ? null : this.settings(listeners, store);
    await this.users.adopt(settings, fresh, () => this.inbounds);
    this.inbounds.push(...fresh);
    return fresh;
  }

  /** The next `adopt` waits until a fleet knows that this node has left, as the end of a process makes sure of. */
  restart(): void {
    this.#left = this.users.leaveFleet();
    this.users.close();
    this.users = this.#open();
  }

  get admin(): UserAdmin {
    assert.ok(this.users.admin !== null);
    return this.users.admin;
  }

  /** Of a new session of the user on `edge`. */
  meterOf(id: string, inner: Meter = METER): Meter {
    return this.users.metering({ open: () => inner }).open(metadataOf("edge", id), {} as Decision);
  }

  first(): UserView {
    return this.admin.users(null)[0] ?? assert.fail("no user");
  }

  revision(tag: string): number {
    return this.admin.inbounds().find((one) => one.tag === tag)?.revision as number;
  }

  [Symbol.dispose](): void {
    this.users.close();
    if (this.#options.home === undefined) rmSync(this.home, { recursive: true, force: true });
  }
}

export const METER: Meter = {
  pieceBytes: 1,
  reserve: () => 5,
  trySend: () => 0,
  adjust() {},
  admit: () => false,
  [Symbol.dispose]() {},
};
export const metadataOf = (name: string, user: string) =>
  ({ inbound: { name, user, userId: user }, source: { ip: "10.0.0.1" } }) as unknown as Metadata;
