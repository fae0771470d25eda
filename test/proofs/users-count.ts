/** What managed users are told that they moved against what the origins saw: in order, and when the program is killed. */
import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Outbound } from "#core/outbound.ts";
import { type AnyJson, ManagedCore, stateFolder } from "../support/managed-core.ts";
import { openTcpOrigin, openUdpEcho, type Origin } from "../support/origin.ts";
import { quantile } from "../support/slow-clients.ts";
import { type Carrier, carrierListeners, FOREVER, Transfer } from "../support/user-traffic.ts";
import { inbox } from "../support/client.ts";

type Random = (below: number) => number;

interface Seen {
  upload: number;
  download: number;
}

export interface CountFindings {
  readonly backend: string;
  readonly flows: number;
  readonly bytes: number;
  /** Bytes by which a user's counters and the origins' differ, summed over users and directions. */
  readonly difference: number;
}

const USERS = 10;
const AT_ONCE = 20;
const MOST_BYTES = 60_000;
/** In front of every flow: USER(4) FOLLOWING(4) WANTED(4), big endian. */
const HEAD_BYTES = 12;

/** Flows of random sizes for ten users, a tenth of them datagrams. */
export async function proveCounts(backend: Carrier, flows: number, random: Random): Promise<CountFindings> {
  await using core = await ManagedCore.start(carrierListeners([backend]));
  const seen: Seen[] = Array.from({ length: USERS }, () => ({ upload: 0, download: 0 }));
  await using origin = await openTcpOrigin((socket) => serve(socket, seen));
  await using datagrams = await openUdpEcho();
  await using stack = new AsyncDisposableStack();
  const port = await core.core.port(backend.tag);
  const users: AnyJson[] = [];
  const outbounds: Outbound[] = [];
  for (let at = 0; at < USERS; at++) {
    users.push(await core.create(backend.tag, `user ${at}`));
    outbounds.push(stack.use(await backend.open(port, users[at] as AnyJson)));
  }
  for (let begun = 0; begun < flows; begun += AT_ONCE)
    await Promise.all(
      Array.from({ length: Math.min(AT_ONCE, flows - begun) }, async (_, at) => {
        const who = (begun + at) % USERS;
        const outbound = outbounds[who] as Outbound;
        if (random(10) === 0) await ping(outbound, datagrams, seen[who] as Seen, 1 + random(1000));
        else await exchange(outbound, origin, { who, up: random(MOST_BYTES), down: random(MOST_BYTES) });
      }),
    );
  const difference = () => differenceOf(core, users, seen);
  let found = await difference();
  for (let tries = 0; found !== 0 && tries < 20; tries++) {
    await sleep(100); // the last piece is counted when it is handed on, which may be after the client has it
    found = await difference();
  }
  const bytes = seen.reduce((sum, { upload, download }) => sum + upload + download, 0);
  return { backend: backend.tag, flows, bytes, difference: found };
}

export function shownCounts({ backend, flows, bytes, difference }: CountFindings): string {
  return `${backend}: ${flows} flows of ${USERS} users, ${(bytes / 1e6).toFixed(1)} MB at the origins, difference ${difference}`;
}

function serve(socket: Socket, seen: readonly Seen[]): void {
  let head: Buffer = Buffer.alloc(0);
  let received = 0;
  socket.on("data", (chunk: Buffer) => {
    received += chunk.length;
    if (head.length < HEAD_BYTES) head = Buffer.concat([head, chunk]);
    if (head.length < HEAD_BYTES || received < HEAD_BYTES + head.readUInt32BE(4)) return;
    const user = seen[head.readUInt32BE(0)] as Seen;
    const wanted = head.readUInt32BE(8);
    user.upload += received;
    user.download += wanted;
    socket.end(Buffer.alloc(wanted, 1));
  });
}

async function exchange(
  outbound: Outbound,
  origin: Origin,
  { who, up, down }: { readonly who: number; readonly up: number; readonly down: number },
): Promise<void> {
  const stream = await outbound.connect(origin.destination, { signal: FOREVER, metadata: null });
  const head = Buffer.alloc(HEAD_BYTES + up);
  head.writeUInt32BE(who, 0);
  head.writeUInt32BE(up, 4);
  head.writeUInt32BE(down, 8);
  let received = 0;
  stream.on("data", (chunk: Buffer) => (received += chunk.length));
  stream.write(head);
  await once(stream, "end");
  if (received !== down) throw new Error(`${received} bytes arrived, ${down} were sent`);
  stream.destroy();
}

async function ping(outbound: Outbound, echo: Origin, seen: Seen, sizeBytes: number): Promise<void> {
  const flow = await outbound.associate(echo.destination, { signal: FOREVER, metadata: null });
  const box = inbox(flow);
  flow.send({ payload: Buffer.alloc(sizeBytes, 1), destination: echo.destination });
  await box.next();
  seen.upload += sizeBytes;
  seen.download += sizeBytes;
  await flow[Symbol.asyncDispose]();
}

async function differenceOf(
  core: ManagedCore,
  users: readonly AnyJson[],
  seen: readonly Seen[],
): Promise<number> {
  let sum = 0;
  for (const [at, { id }] of users.entries()) {
    const { upload_bytes, download_bytes } = await core.user(id);
    const { upload, download } = seen[at] as Seen;
    sum += Math.abs(upload_bytes - upload) + Math.abs(download_bytes - download);
  }
  return sum;
}

export interface CrashFindings {
  readonly kills: number;
  /** How long before a kill the traffic was moved that is missing after it, in ms, ascending. */
  readonly lostMs: readonly number[];
  /** Counters that had more than was moved. */
  readonly doubled: number;
}

const PACE = { chunkBytes: 1000, pauseMs: 10 };
const TRANSFERS = 4;
const SAMPLE_MS = 10;

/** A user with steady traffic; what the counters are after a kill is dated by what had been moved when. */
export async function proveCrashes(backend: Carrier, kills: number, random: Random): Promise<CrashFindings> {
  using state = stateFolder();
  await using origin = await openTcpOrigin((socket) => void socket.pipe(socket));
  const options = { ...carrierListeners([backend]), store: state.store, folder: state.path };
  const lostMs: number[] = [];
  let doubled = 0;
  let user: AnyJson | null = null;
  let before: Round | null = null;
  for (let round = 0; round <= kills; round++) {
    await using core = await ManagedCore.start(options);
    user ??= await core.create(backend.tag, "alice");
    const counted = (await core.user(user.id)).upload_bytes;
    if (before !== null) {
      lostMs.push(Math.max(0, before.killedMs - timeOf(counted, before.history)));
      if (counted > (before.history.at(-1) as Moment).bytes + TRANSFERS * PACE.chunkBytes) doubled++;
    }
    if (round === kills) break;
    await using outbound = await backend.open(await core.core.port(backend.tag), user);
    before = await killUnderLoad(core, outbound, origin, { counted, afterMs: 1200 + random(1500) });
  }
  return { kills, lostMs: lostMs.toSorted((a, b) => a - b), doubled };
}

/** `bytes`: moved there and back by then, since the user was made. */
interface Moment {
  readonly atMs: number;
  readonly bytes: number;
}

interface Round {
  readonly history: readonly Moment[];
  readonly killedMs: number;
}

async function killUnderLoad(
  core: ManagedCore,
  outbound: Outbound,
  origin: Origin,
  { counted, afterMs }: { readonly counted: number; readonly afterMs: number },
): Promise<Round> {
  const opening = Array.from({ length: TRANSFERS }, () => Transfer.open(outbound, origin.destination, PACE));
  const transfers = await Promise.all(opening);
  const history: Moment[] = [{ atMs: performance.now(), bytes: counted }];
  const look = (): void => {
    const bytes = counted + transfers.reduce((sum, transfer) => sum + transfer.bytes, 0);
    history.push({ atMs: performance.now(), bytes });
  };
  const looking = setInterval(look, SAMPLE_MS);
  await sleep(afterMs);
  look();
  const killedMs = performance.now();
  await core.core.stop("SIGKILL");
  clearInterval(looking);
  look();
  for (const { stream } of transfers) stream.destroy();
  return { history, killedMs };
}

/** When the last of so many bytes had been moved. */
function timeOf(bytes: number, history: readonly Moment[]): number {
  const after = history.find((moment) => moment.bytes > bytes);
  return after?.atMs ?? Number.POSITIVE_INFINITY;
}

export function shownCrashes({ kills, lostMs, doubled }: CrashFindings): string {
  const worst = Math.round(lostMs.at(-1) ?? 0);
  return `${kills} kills under load: at most the last ${worst} ms lost (median ${Math.round(quantile(lostMs, 0.5))}), ${doubled} counted twice`;
}
