/**
 * One user is changed in every way while others transfer: no other user loses a byte or a handshake, and who loses the
 * right to be served loses the connection at once.
 */
import type { Outbound } from "#core/outbound.ts";
import type { Destination } from "#core/session.ts";
import { type AnyJson, ManagedCore, stateFolder, type UserJson } from "../support/managed-core.ts";
import { makeState, type MadeUser } from "../support/many-users.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { starvedMs } from "../support/starved.ts";
import { quantile } from "../support/slow-clients.ts";
import { type Carrier, carrierListeners, isServed, Transfer } from "../support/user-traffic.ts";

export interface RevokeBudget {
  /** Users with a transfer each. */
  readonly users: number;
  /** How often the one is created, changed in all ways and deleted. */
  readonly rounds: number;
}

export interface RevokeFindings {
  readonly backend: string;
  readonly users: number;
  /** Transfers of the others that were cut, or came back changed. */
  readonly broken: number;
  readonly handshakes: number;
  readonly dropped: number;
  /** From the request to the end of the connection at the client, in ms, ascending. */
  readonly revokedMs: readonly number[];
  /** Of requests that change nothing, each just before a revocation: what the machine makes of any request at all. */
  readonly idleMs: readonly number[];
  /** How long the program was ready to run and had no CPU, from each request to the end of its connection. */
  readonly starvedMs: readonly number[];
}

const CALM = { chunkBytes: 1024, pauseMs: 1000 };
/** Always more to send than the limits of the users let through: every transfer is held back most of the time. */
const HELD = { chunkBytes: 4096, pauseMs: 0 };
const HELD_BPS = 32_000;
/** Handshakes at once when all others connect. */
const BATCH = 25;

export async function proveRevocation(
  backend: Carrier,
  { users, rounds }: RevokeBudget,
): Promise<RevokeFindings> {
  using state = stateFolder();
  const limits = { upload_bps: HELD_BPS, download_bps: HELD_BPS };
  const made = makeState(state.store, { [backend.tag]: backend.protocol }, users + 1, limits);
  await using core = await ManagedCore.start({
    ...carrierListeners([backend]),
    store: state.store,
    folder: state.path,
  });
  await using origin = await openTcpOrigin(echo);
  await using outbounds = new AsyncDisposableStack();
  const port = await core.core.port(backend.tag);
  const [shaker, ...others] = made as [MadeUser, ...MadeUser[]];
  const transfers: Transfer[] = [];
  for (let at = 0; at < others.length; at += BATCH) {
    const batch = others.slice(at, at + BATCH).map(async (user) => {
      const outbound = outbounds.use(await backend.open(port, credentialOf(user)));
      return await (await Transfer.open(outbound, origin.destination, HELD)).running();
    });
    transfers.push(...(await Promise.all(batch)));
  }
  const changes = new UserChanges(backend, port, credentialOf(shaker), origin.destination);
  const revokedMs: number[] = [];
  const victim = new Victim(core, backend, port, origin.destination);
  for (let round = 0; round < rounds; round++) revokedMs.push(...(await victim.round(`victim ${round}`)));
  const { count, dropped } = await changes.stop();
  const intact = await Promise.all(transfers.map((transfer) => transfer.finish()));
  return {
    backend: backend.tag,
    users,
    broken: intact.filter((one) => !one).length,
    handshakes: count,
    dropped,
    revokedMs: revokedMs.toSorted((a, b) => a - b),
    idleMs: victim.idleMs.toSorted((a, b) => a - b),
    starvedMs: victim.starvedMs.toSorted((a, b) => a - b),
  };
}

export function shownRevocation(found: RevokeFindings): string {
  const spread = (took: readonly number[]) => {
    const [p50, p99, worst] = [0.5, 0.99, 1].map((share) => quantile(took, share).toFixed(1));
    return `p50 ${p50}, p99 ${p99}, worst ${worst} ms`;
  };
  return (
    `${found.backend}: ${found.users} others, ${found.broken} interrupted; ` +
    `${found.handshakes} handshakes of another, ${found.dropped} dropped; ` +
    `${found.revokedMs.length} revocations ${spread(found.revokedMs)}, ` +
    `the program meanwhile without a CPU ${spread(found.starvedMs)}; ` +
    `requests that change nothing ${spread(found.idleMs)}`
  );
}

function credentialOf({ credential }: MadeUser): Pick<UserJson, "uuid" | "password"> {
  return { uuid: credential, password: credential };
}

/** One user who connects, is served, and connects again, all the time. */
class UserChanges {
  count = 0;
  dropped = 0;
  #running = true;
  readonly #done: Promise<void>;

  constructor(backend: Carrier, port: number, user: Pick<UserJson, "uuid" | "password">, to: Destination) {
    this.#done = this.#advance(() => backend.open(port, user), to);
  }

  async #advance(open: () => Promise<Outbound>, to: Destination): Promise<void> {
    while (this.#running) {
      await using outbound = await open();
      if (!(await isServed(outbound, to))) this.dropped++;
      this.count++;
    }
  }

  async stop(): Promise<this> {
    this.#running = false;
    await this.#done;
    return this;
  }
}

class Victim {
  readonly idleMs: number[] = [];
  readonly starvedMs: number[] = [];
  readonly #core: ManagedCore;
  readonly #backend: Carrier;
  readonly #port: number;
  readonly #to: Destination;

  constructor(core: ManagedCore, backend: Carrier, port: number, to: Destination) {
    this.#core = core;
    this.#backend = backend;
    this.#port = port;
    this.#to = to;
  }

  /** From creation to deletion; answers with how long each connection outlived what ended its right. */
  async round(name: string): Promise<readonly number[]> {
    const { tag, protocol, another } = this.#backend;
    let user = await this.#core.create(tag, name);
    const path = `/${user.id}`;
    await using first = await this.#connect(user);
    user = await this.#core.change(tag, "PUT", path, { name: `${name} renamed` });
    await this.#core.change(tag, "POST", `${path}/reset-traffic`);
    await this.#core.change(tag, "POST", `${path}/rotate-subscription`);
    if (first.transfer.stream.destroyed) throw new Error("renaming, resetting or rotating cut the user off");
    const took = [await this.#revoke(first.transfer, "PUT", path, { enabled: false })];
    user = await this.#core.change(tag, "PUT", path, { enabled: true });
    await using second = await this.#connect(user);
    const fresh = another();
    took.push(await this.#revoke(second.transfer, "PUT", path, fresh));
    user = { ...user, ...fresh };
    if (protocol === "vless") {
      await using third = await this.#connect(user);
      took.push(await this.#revoke(third.transfer, "PUT", path, { flow: "xtls-rprx-vision" }));
      await this.#core.change(tag, "PUT", path, { flow: "" });
    }
    await using last = await this.#connect(user);
    took.push(await this.#revoke(last.transfer, "DELETE", path));
    return took;
  }

  async #connect(user: AnyJson): Promise<AsyncDisposable & { readonly transfer: Transfer }> {
    const outbound = await this.#backend.open(this.#port, user);
    const transfer = await Transfer.open(outbound, this.#to, CALM);
    await transfer.running();
    return { transfer, [Symbol.asyncDispose]: () => outbound[Symbol.asyncDispose]() };
  }

  async #revoke(transfer: Transfer, method: string, path: string, fields: object = {}): Promise<number> {
    const askedMs = performance.now();
    const revision = await this.#core.revision(this.#backend.tag);
    this.idleMs.push(performance.now() - askedMs);
    const [query, body] =
      method === "DELETE" ? [`?revision=${revision}`, {}] : ["", { body: { ...fields, revision } }];
    const { pid } = this.#core.core;
    const starvedBeforeMs = starvedMs(pid);
    const sentMs = performance.now();
    const said = await this.#core.ask(method, `/api/admin/users${path}${query}`, body);
    if (said.status >= 300) throw new Error(`${method} ${path}: ${said.status} ${said.text}`);
    const closedMs = await transfer.closed;
    this.starvedMs.push(starvedMs(pid) - starvedBeforeMs);
    return closedMs - sentMs;
  }
}
