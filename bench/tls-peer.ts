/**
 * The load of the TLS benchmark. It shares two cores with what it measures, so in the window of a bulk it speaks no TLS:
 * uploads are sealed beforehand, into a file in memory, and go out by sendfile; downloads are taken off the socket
 * unopened. `check` opens and compares what comes and has the sink compare what goes, outside of any window, and says how
 * much of the wire is plain bytes. Handshakes are whole: each ends in order, and is counted when the other end has closed; a
 * connection is counted with its answer, since some keep it for a while when its client has gone.
 */
import { BROKEN, openSsl, RECORD_BYTES, type Ssl } from "#platform/linux/ssl.ts";
import { EAGAIN, EINTR, READABLE, WRITABLE } from "#platform/linux/relay-calls.ts";
import { encodeSockaddr } from "#platform/linux/sockaddr.ts";
import { CHECKED_BYTES, CONTENT, isContent, openEndCalls } from "./end-calls.ts";
import { ffiFor } from "#platform/ffi.ts";

type Way = "down" | "up";

/** `header`: hex, goes in front of the byte that tells the sink what to do. */
export type TlsTask = { readonly port: number; readonly header: string } & (
  | {
      readonly what: "bulk";
      readonly way: Way;
      readonly streams: number;
      readonly ms: number;
      /** Plain bytes of a byte that comes. */
      readonly plainShare: number;
    }
  | {
      readonly what: "handshakes";
      readonly parallel: number;
      readonly ms: number;
      /** Is something asked for and answered? */
      readonly asks: boolean;
    }
  | { readonly what: "check" }
);
type Of<What extends TlsTask["what"]> = Extract<TlsTask, { what: What }>;

/** `whole`: the amount with that of the warm-up. Of a check: plain bytes that came, of so many on the wire (`whole`). */
export interface TlsResult {
  readonly amount: number;
  readonly whole: number;
  readonly seconds: number;
}

const WARM_UP_MS = 300;
/** Sealed for one measurement; it ends where one stream has no more. */
const PREPARED_BYTES = 2.5 * 2 ** 30;
/** What one call passes on at most, so that streams take turns. */
const PIECE_BYTES = 1024 * 1024;
const TIMEOUT_MS = 5_000;
const SSL_CTRL_MODE = 33;
const SSL_CTRL_SET_GROUPS_LIST = 92;
const SSL_CTRL_SET_MIN_PROTO_VERSION = 123;

const calls = openEndCalls();
const ssl = openSsl(calls.buffer) as Ssl;
const { functions } = ffiFor("this measurement").dlopen(null, {
  SSL_new: { arguments: ["pointer"], return: "pointer" },
  SSL_set_fd: { arguments: ["pointer", "i32"], return: "i32" },
  SSL_set0_wbio: { arguments: ["pointer", "pointer"], return: "void" },
  SSL_get_rbio: { arguments: ["pointer"], return: "pointer" },
  SSL_set_connect_state: { arguments: ["pointer"], return: "void" },
  TLS_client_method: { arguments: [], return: "pointer" },
  SSL_CTX_new: { arguments: ["pointer"], return: "pointer" },
  SSL_CTX_ctrl: { arguments: ["pointer", "i32", "i64", "pointer"], return: "i64" },
  SSL_CTX_set_ciphersuites: { arguments: ["pointer", "pointer"], return: "i32" },
  BIO_new_fd: { arguments: ["i32", "i32"], return: "pointer" },
  BIO_number_read: { arguments: ["pointer"], return: "u64" },
});
const context = newContext();

/** Trusts every certificate, and offers one group and cipher only: else a new library would do dearer work than an old one. */
function newContext(): bigint {
  const made = functions.SSL_CTX_new(functions.TLS_client_method());
  functions.SSL_CTX_ctrl(made, SSL_CTRL_MODE, 1n | 2n, 0n); // partial writes, moving buffers
  functions.SSL_CTX_ctrl(made, SSL_CTRL_SET_MIN_PROTO_VERSION, 0x0304n, 0n);
  const isSet = [
    functions.SSL_CTX_ctrl(made, SSL_CTRL_SET_GROUPS_LIST, 0n, Buffer.from("X25519\0")) === 1n,
    functions.SSL_CTX_set_ciphersuites(made, Buffer.from("TLS_AES_128_GCM_SHA256\0")) === 1,
  ];
  if (isSet.includes(false)) throw new Error("libssl refuses the cipher or the group");
  return made;
}

interface Client {
  readonly fd: number;
  readonly object: bigint;
}

function dial(port: number, epoll: number, data: number): Client {
  const fd = calls.open(4);
  calls.noDelay(fd);
  calls.connect(fd, encodeSockaddr(calls.address, { address: Uint8Array.of(127, 0, 0, 1), port }));
  calls.watch(epoll, fd, data);
  const object = functions.SSL_new(context);
  functions.SSL_set_fd(object, fd);
  functions.SSL_set_connect_state(object);
  return { fd, object };
}

/** Blocks until the step answers with something else than EAGAIN. */
function wait(epoll: number, step: () => number): number {
  for (let answer = step(); ; answer = step()) {
    if (answer === EINTR) continue;
    if (answer !== EAGAIN) return answer;
    if (calls.wait(epoll, TIMEOUT_MS) === 0) throw new Error("the other end is silent");
  }
}

/** True: done. */
function shake({ object }: Client): boolean {
  const answer = ssl.handshake(object);
  if (answer === BROKEN) throw new Error(ssl.reasonOf(ssl.fault));
  return answer === 1;
}

function open(epoll: number, port: number, data: number): Client {
  const client = dial(port, epoll, data);
  wait(epoll, () => (shake(client) ? 1 : EAGAIN));
  return client;
}

function say({ object }: Client, header: string, kind: string): void {
  const words = Buffer.concat([Buffer.from(header, "hex"), Buffer.from(kind)]);
  calls.buffer.set(words);
  if (ssl.write(object, words.length) !== words.length) throw new Error("the request was not taken");
}

function drop({ fd, object }: Client): void {
  ssl.free(object);
  calls.reset(fd);
}

/** Seals so many plain bytes of `CONTENT` into a file; from here on the client can only read. */
function seal({ object }: Client, size: number): number {
  const file = calls.openFile();
  functions.SSL_set0_wbio(object, functions.BIO_new_fd(file, 0));
  for (let done = 0; done < size; done += CONTENT.length) {
    calls.buffer.set(CONTENT);
    if (ssl.write(object, CONTENT.length) !== CONTENT.length) throw new Error("no memory for an upload");
  }
  return file;
}

/** What an answer of the kernel says of a stream: bytes, or 0 where it has to wait. */
function moved(answer: number): number {
  if (answer > 0) return answer;
  if (answer === EAGAIN || answer === EINTR) return 0;
  throw new Error(`a stream of the load has ended: ${answer}`);
}

async function bulk(task: Of<"bulk">): Promise<TlsResult> {
  const { port, header, way, streams, ms } = task;
  const epoll = calls.openEpoll();
  const clients = Array.from({ length: streams }, (_, at) => open(epoll, port, at));
  for (const client of clients) say(client, header, way === "down" ? "D" : "U");
  const each = Math.ceil(PREPARED_BYTES / streams / CONTENT.length) * CONTENT.length;
  const files = way === "up" ? clients.map((client) => seal(client, each)) : [];
  const fileBytes = (each / RECORD_BYTES) * (RECORD_BYTES + 22); // RFC 8446 §5.2: header 5, type 1, tag 16
  await new Promise((resolve) => setTimeout(resolve, 100)); // the sink has read what it is to do
  const sums = new Float64Array(streams);
  const ready = new Set(clients.keys());
  let isDry = false;
  const turn = (at: number): void => {
    const { fd } = clients[at] as Client;
    const sum = sums[at] as number;
    const bytes = moved(
      way === "down"
        ? calls.swallow(fd)
        : calls.sendFile(fd, files[at] as number, sum, Math.min(PIECE_BYTES, fileBytes - sum)),
    );
    sums[at] = sum + bytes;
    if (bytes === 0) ready.delete(at);
    else if (way === "up" && sum + bytes >= fileBytes) isDry = true;
  };
  const runUntil = (untilMs: number): number => {
    while (performance.now() < untilMs && !isDry) {
      const count = calls.wait(epoll, ready.size > 0 ? 0 : 100);
      for (let index = 0; index < count; index++)
        if ((calls.eventsAt(index) & (way === "down" ? READABLE : WRITABLE)) !== 0)
          ready.add(calls.dataAt(index));
      for (const at of ready) turn(at);
    }
    return sums.reduce((sum, one) => sum + one, 0);
  };
  const before = runUntil(performance.now() + WARM_UP_MS);
  const startMs = performance.now();
  const after = runUntil(startMs + ms);
  const seconds = (performance.now() - startMs) / 1_000;
  clients.forEach(drop);
  for (const fd of [...files, epoll]) calls.close(fd);
  const plainShare = way === "up" ? each / fileBytes : task.plainShare;
  return { amount: (after - before) * plainShare, whole: after * plainShare, seconds };
}

/** Throws where one byte is not what was sent. */
function check({ port, header }: Of<"check">): TlsResult {
  const epoll = calls.openEpoll();
  const up = open(epoll, port, 0);
  say(up, header, "C");
  for (let at = 0; at < CHECKED_BYTES;) {
    const from = at % CONTENT.length;
    const piece = CONTENT.subarray(from, Math.min(CONTENT.length, from + CHECKED_BYTES - at));
    at += wait(epoll, () => (calls.buffer.set(piece), ssl.write(up.object, piece.length)));
  }
  const read = ({ object }: Client): number =>
    wait(epoll, () => ssl.read(object, calls.buffer.length) || ssl.outcome);
  if (read(up) !== 1 || calls.buffer[0] !== "Y".charCodeAt(0)) throw new Error("an upload came as another");
  drop(up);
  const down = open(epoll, port, 0);
  say(down, header, "D");
  const wireBytes = (): number => Number(functions.BIO_number_read(functions.SSL_get_rbio(down.object)));
  let [plain, wire] = [0, 0];
  let at = 0;
  while (at < CHECKED_BYTES) {
    const bytes = read(down);
    if (bytes <= 0 || !isContent(calls.buffer.subarray(0, bytes), at))
      throw new Error("a download came as another");
    at += bytes;
    if (at < CHECKED_BYTES / 2) [plain, wire] = [at, wireBytes()]; // some begin with small records
  }
  const result = { amount: at - plain, whole: wireBytes() - wire, seconds: 0 };
  drop(down);
  calls.close(epoll);
  return result;
}

interface HandshakeClient extends Client {
  phase: "shakes" | "asked" | "ends";
}

function handshakes({ port, header, parallel, ms, asks }: Of<"handshakes">): TlsResult {
  const epoll = calls.openEpoll();
  const begin = (at: number): HandshakeClient => {
    const client = dial(port, epoll, at);
    ssl.readAhead(client.object);
    return { ...client, phase: "shakes" };
  };
  const clients = Array.from({ length: parallel }, (_, at) => begin(at));
  const end = (client: HandshakeClient): boolean => {
    ssl.free(client.object);
    calls.close(client.fd);
    return true;
  };
  const hasEnded = (client: HandshakeClient): boolean => {
    if (client.phase === "shakes") {
      if (!shake(client)) return false;
      client.phase = asks ? "asked" : "ends";
      if (asks) say(client, header, "E");
      else {
        ssl.shutdown(client.object);
        calls.endWriting(client.fd);
      }
    }
    const bytes = ssl.read(client.object, calls.buffer.length);
    const isOver = ssl.outcome !== EAGAIN && ssl.outcome !== EINTR;
    if (client.phase === "ends") return isOver && end(client);
    if (isOver) throw new Error("no answer");
    if (bytes > 0) ssl.shutdown(client.object);
    return bytes > 0 && end(client);
  };
  const startMs = performance.now();
  let amount = 0;
  while (performance.now() - startMs < ms) {
    const count = calls.wait(epoll, TIMEOUT_MS);
    if (count === 0) throw new Error("the other end is silent");
    for (let index = 0; index < count; index++) {
      const at = calls.dataAt(index);
      if (!hasEnded(clients[at] as HandshakeClient)) continue;
      clients[at] = begin(at);
      amount++;
    }
  }
  const seconds = (performance.now() - startMs) / 1_000;
  clients.forEach(drop);
  calls.close(epoll);
  return { amount, whole: amount, seconds };
}

async function perform(task: TlsTask): Promise<TlsResult> {
  if (task.what === "bulk") return await bulk(task);
  return task.what === "check" ? check(task) : handshakes(task);
}

process.on("message", (task: TlsTask) => {
  void perform(task).then((result) => process.send?.(result));
});
process.on("disconnect", () => process.exit());
