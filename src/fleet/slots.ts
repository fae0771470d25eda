/**
 * Where users are online, told to the database, and what the limits over all nodes leave to this one. A session is let in by
 * what is known here; what is beyond a limit of the whole fleet is ended by the answer.
 */
import { DatabaseError } from "pg";
import type { Log } from "#core/log.ts";
import type { Ip } from "#core/session.ts";
import type { Elsewhere, Presence, UserKey } from "#users/presence.ts";
import type { UserRegistry } from "#users/user-registry.ts";
import { reasonOf } from "./errors.ts";
import type { FleetConnection } from "./fleet-connection.ts";
import type { NodeIdentity } from "./identity.ts";

export interface SlotsEnv {
  readonly identity: NodeIdentity;
  readonly registry: UserRegistry;
  readonly connection: FleetConnection;
  readonly log: Log;
  readonly monotonicMs: () => number;
  readonly isUp: () => boolean;
}

const BEAT_MS = 10_000;
/** After a session of a limited user has come or gone. */
const SOON_MS = 100;
/** After the database did not take them. */
const RETRY_MS = 1_000;
/** What was told of other nodes counts so long. */
const LIFE_MS = 30_000;
/** An address that moves bytes is told again so often, for what is shown of it. */
const SEEN_MS = 10_000;
/** Of one statement. */
const MOST_ROWS = 2_000;

/** An address of a user, as it was told last. */
interface Told {
  readonly connections: number;
  readonly seenAtMs: number;
}

interface Row {
  readonly user: UserKey;
  /** Null: there is nothing to tell, the answer is wanted. */
  readonly ip: Ip | null;
  readonly connections: number;
  readonly seenAtMs: number;
}

export class Slots {
  readonly #env: SlotsEnv;
  /** By user, then by address. */
  readonly #told = new Map<string, Map<Ip, Told>>();
  /** Limited users whose sessions have changed. */
  readonly #dirty = new Map<string, UserKey>();
  /** The database may have anything: all is told anew. */
  #isWhole = true;
  #isTelling = false;
  #isOver = false;
  /** Said already. */
  #fault = "";
  #timer: NodeJS.Timeout | null = null;
  readonly #beats: NodeJS.Timeout;

  constructor(env: SlotsEnv) {
    this.#env = env;
    this.#beats = setInterval(() => void this.#beat(), BEAT_MS).unref();
    env.registry.presences.onLimited = (user) => {
      this.#dirty.set(user.id, user);
      this.#soon();
    };
  }

  /** Addresses that the database has of this node. */
  get size(): number {
    return this.#told.values().reduce((sum, ips) => sum + ips.size, 0);
  }

  /** The database was away and is back. */
  tellAll(): void {
    this.#isWhole = true;
    void this.#beat();
  }

  /** No user is online here any more. Rejects as the connection does. */
  async leave(): Promise<void> {
    this[Symbol.dispose]();
    await this.#tell([], true);
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    clearInterval(this.#beats);
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#env.registry.presences.onLimited = () => {};
  }

  #soon(milliseconds = SOON_MS): void {
    if (this.#timer !== null || this.#isOver || !this.#env.isUp()) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (this.#isWhole) return void this.#beat();
      void this.#send(() => [...this.#dirty.values()].flatMap((user) => this.#rowsOf(user, true)));
    }, milliseconds).unref();
  }

  async #beat(): Promise<void> {
    const { presences } = this.#env.registry;
    presences.forget(this.#env.monotonicMs());
    await this.#send(() => {
      if (this.#isWhole) this.#told.clear();
      const present = [...presences.all()];
      const known = new Set(present.map(({ id }) => id));
      const gone = [...this.#told].filter(([id]) => !known.has(id));
      return [
        ...present.flatMap((user) => this.#rowsOf(user, false)),
        ...gone.flatMap(([id, ips]) => [...ips.keys()].map((ip) => goneRow({ listener: "", id }, ip))),
      ];
    });
  }

  /** One at a time; what changes meanwhile is told behind it. */
  async #send(rowsOf: () => readonly Row[]): Promise<void> {
    if (this.#isTelling || !this.#env.isUp()) return;
    this.#isTelling = true;
    try {
      const rows = rowsOf();
      this.#dirty.clear();
      for (let at = 0; at < rows.length || this.#isWhole; at += MOST_ROWS)
        await this.#tell(rows.slice(at, at + MOST_ROWS), this.#isWhole);
    } catch (error) {
      this.#isWhole = true;
      const text = `fleet: addresses of users are not told: ${reasonOf(error)}`;
      if (error instanceof DatabaseError && text !== this.#fault) this.#env.log.error(text);
      else this.#env.log.debug(() => text);
      this.#fault = text;
    } finally {
      this.#isTelling = false;
      if (this.#isWhole) this.#soon(RETRY_MS);
      else if (this.#dirty.size > 0) this.#soon();
    }
  }

  /** What the database does not have of a user. `isAsked`: the answer is wanted in any case. */
  #rowsOf(user: UserKey, isAsked: boolean): readonly Row[] {
    const { registry } = this.#env;
    const told = this.#told.get(user.id);
    const origins = registry.presences.get(user.listener, user.id)?.origins ?? [];
    const here = new Set(origins.map(({ ip }) => ip));
    const limits = registry.books.get(user.listener)?.users.get(user.id)?.limits;
    const isLimited = limits !== undefined && limits.ips + limits.connections > 0;
    const rows: Row[] = [];
    for (const { ip, visits, seenAtMs } of origins) {
      const before = told?.get(ip);
      const isNews = before?.connections !== visits.size || seenAtMs - before.seenAtMs >= SEEN_MS;
      if (isNews) rows.push({ user, ip, connections: visits.size, seenAtMs });
    }
    for (const ip of told?.keys() ?? []) if (!here.has(ip)) rows.push(goneRow(user, ip));
    if (rows.length === 0 && (isAsked || isLimited))
      rows.push({ user, ip: null, connections: 0, seenAtMs: 0 });
    return rows;
  }

  async #tell(rows: readonly Row[], isWhole: boolean): Promise<void> {
    const { identity, connection, monotonicMs } = this.#env;
    const nowMs = monotonicMs();
    const column = <T>(of: (row: Row) => T): readonly T[] => rows.map(of);
    const answers = await connection.query<SlotRow>(
      "SELECT * FROM weir.hold_slots($1, $2, $3, $4, $5, $6, $7)",
      [
        identity.nodeId,
        identity.instance,
        isWhole,
        column(({ user }) => user.id),
        column(({ ip }) => ip),
        column(({ connections }) => connections),
        column(({ seenAtMs }) => Math.max(0, Math.trunc(nowMs - seenAtMs))),
      ],
    );
    this.#isWhole = false;
    for (const row of rows) this.#note(row);
    const users = new Map(rows.map(({ user }) => [user.id, user]));
    for (const answer of answers) {
      const user = users.get(answer.user_id);
      if (user !== undefined) this.#take(user, answer);
    }
  }

  #note({ user: { id }, ip, connections, seenAtMs }: Row): void {
    if (ip === null) return;
    const told = this.#told.get(id) ?? new Map<Ip, Told>();
    if (connections === 0) told.delete(ip);
    else told.set(ip, { connections, seenAtMs });
    if (told.size === 0) this.#told.delete(id);
    else this.#told.set(id, told);
  }

  #take(user: UserKey, { refused, most, ips, connections }: SlotRow): void {
    const { registry, monotonicMs } = this.#env;
    const elsewhere: Elsewhere = { ips: new Set(ips), connections, untilMs: monotonicMs() + LIFE_MS };
    registry.presences.tell(user, elsewhere);
    const presence = registry.presences.get(user.listener, user.id);
    if (presence === null || !isBeyond(presence, refused, most)) return;
    presence.correct({ refused, connections: most });
    const told = this.#told.get(user.id);
    for (const ip of refused) told?.delete(ip); // the database has done so, too
    for (const [ip, one] of told ?? []) told?.set(ip, { ...one, connections: -1 }); // and may have lowered these
    this.#dirty.set(user.id, user);
  }
}

function isBeyond(presence: Presence, refused: readonly Ip[], most: number | null): boolean {
  return refused.length > 0 || (most !== null && presence.size > most);
}

function goneRow(user: UserKey, ip: Ip): Row {
  return { user, ip, connections: 0, seenAtMs: 0 };
}

interface SlotRow {
  readonly user_id: string;
  readonly refused: Ip[];
  readonly most: number | null;
  readonly ips: Ip[];
  readonly connections: number;
}
